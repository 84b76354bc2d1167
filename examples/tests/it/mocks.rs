//! Clients tested without their server.

use std::sync::{Arc, Mutex};

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::interceptor::{AnyMessage, Call, Messages, Next, Reply, head};
use thalweg::{CallOptions, Caller, Channel, Code, Message, Method, Request, Response, Server, Status};

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

/// The code under test; generic over the client's caller.
async fn greet<C: Caller>(greeter: &GreeterClient<C>, name: &str) -> String {
    match greeter.say_hello(HelloRequest { name: name.to_owned() }).await {
        Ok(response) => response.into_inner().message,
        Err(status) => format!("{:?}: {}", status.code(), status.message()),
    }
}

async fn check<C: Caller>(greeter: &GreeterClient<C>) {
    assert_eq!(greet(greeter, "Ada").await, "Hello Ada!");
    assert_eq!(greet(greeter, "").await, "InvalidArgument: say your name");
}

fn hello(HelloRequest { name }: &HelloRequest) -> Result<HelloReply, Status> {
    match name.as_str() {
        "" => Err(Status::invalid_argument("say your name")),
        name => Ok(HelloReply { message: format!("Hello {name}!") }),
    }
}

#[tokio::test]
async fn in_memory_server_mocks_a_service() {
    struct MyGreeter;

    impl Greeter for MyGreeter {
        async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
            hello(request.get_ref()).map(Response::new)
        }
    }

    let builder = Channel::builder("memory:1").connector(|| async {
        let (client, server) = tokio::io::duplex(64 * 1024);
        tokio::spawn(Server::builder().add_service(GreeterServer::new(MyGreeter)).serve_connection(server));
        Ok(client)
    });
    check(&GreeterClient::new(builder.connect().await.expect("a server"))).await;
}

#[tokio::test]
async fn interceptor_mocks_a_service() {
    async fn respond(call: Call, _: Next) -> Result<Reply, Status> {
        assert_eq!(call.method().path(), "/helloworld.Greeter/SayHello");
        let request = call.request().get_ref().as_one().and_then(AnyMessage::downcast_ref);
        Ok(Response::new(Messages::one(hello(request.expect("a HelloRequest"))?)))
    }

    let unreachable = Channel::builder("nowhere:1").connect_lazy().expect("a channel");
    check(&GreeterClient::new(unreachable.with_interceptor(respond))).await;

    // Interceptors under test wrap the mock.
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let recording = Arc::clone(&recorded);
    let tenant = head(move |request| {
        recording.lock().expect("no panic").push(request.metadata().get("x-tenant").cloned());
        Ok(request)
    });
    let greeter = GreeterClient::with_interceptor(
        unreachable.with_interceptor(respond).with_interceptor(tenant),
        |mut request| {
            request.metadata_mut().insert("x-tenant", "42".parse().expect("ASCII"));
            Ok(request)
        },
    );
    check(&greeter).await;
    assert_eq!(
        *recorded.lock().expect("no panic"),
        [Some("42".parse().expect("ASCII")), Some("42".parse().expect("ASCII"))]
    );
}

/// A hand-written caller that supports unary calls only.
#[derive(Clone)]
struct Unary;

impl Caller for Unary {
    async fn unary<Req: Message, Res: Message>(
        &self,
        _: &Method,
        request: Request<Req>,
        _: &CallOptions,
    ) -> Result<Response<Res>, Status> {
        let request = AnyMessage::new(request.into_inner());
        let response = hello(request.downcast_ref().expect("a HelloRequest"))?;
        AnyMessage::new(response).into_message().map(Response::new)
    }
}

#[tokio::test]
async fn custom_caller_mocks_a_channel() {
    check(&GreeterClient::new(Unary)).await;
    let (method, options) = (&helloworld::greeter_client::SAY_HELLO, CallOptions::default());
    let request = Request::new(HelloRequest::default());
    let streamed = Unary.server_streaming::<_, HelloReply>(method, request, &options).await;
    let status = streamed.expect_err("it has none");
    let message = "this caller does not support server-streaming calls";
    assert_eq!((status.code(), status.message()), (Code::Unimplemented, message));
}
