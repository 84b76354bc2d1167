//! Wraps a channel and a service in a tower layer.
//!
//! Run it with `cargo run -p thalweg-examples --example tower`. It prints:
//!
//! ```text
//! client: SayHello, call 1
//! server: SayHello, call 1
//! Hello world!
//! client: SayHello, call 2
//! server: SayHello, call 2
//! Hello world!
//! ```
//!
//! tower's own layers, such as `ConcurrencyLimitLayer`, are used the same way. For new code, an interceptor is shorter;
//! see `interceptors.rs`.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::interceptor::{Call, Reply, layer};
use thalweg::server::InterceptedService;
use thalweg::{Channel, Request, Response, Server, Status};
use tower_layer::Layer;
use tower_service::Service;

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

struct MyGreeter;

impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let name = request.into_inner().name;
        Ok(Response::new(HelloReply { message: format!("Hello {name}!") }))
    }
}

/// The layer. It creates one service, which is cloned for each call.
struct CountingLayer {
    side: &'static str,
}

impl<S> Layer<S> for CountingLayer {
    type Service = CountingService<S>;

    fn layer(&self, inner: S) -> CountingService<S> {
        CountingService { inner, side: self.side, calls: Arc::default() }
    }
}

/// The service. It maps a `Call` to a `Reply` on the client and on the server, for all call types.
#[derive(Clone)]
struct CountingService<S> {
    inner: S,
    side: &'static str,
    /// Shared by all clones, and so by all calls.
    calls: Arc<AtomicUsize>,
}

impl<S: Service<Call, Response = Reply>> Service<Call> for CountingService<S> {
    type Response = Reply;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, call: Call) -> S::Future {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        println!("{}: {}, call {number}", self.side, call.method().name());
        self.inner.call(call)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Wraps one service. `Server::builder().interceptor(..)` wraps all.
    let service =
        InterceptedService::new(GreeterServer::new(MyGreeter), layer(CountingLayer { side: "server" }));
    let server = Server::builder().add_service(service).bind(&["127.0.0.1:0".parse()?]).await?;
    let channel = Channel::builder(server.local_addresses()[0].to_string()).connect_lazy()?;
    tokio::spawn(server.serve());

    let greeter = GreeterClient::new(channel.with_interceptor(layer(CountingLayer { side: "client" })));
    for _ in 0..2 {
        let response = greeter.say_hello(HelloRequest { name: "world".to_owned() }).await?;
        println!("{}", response.into_inner().message);
    }
    Ok(())
}
