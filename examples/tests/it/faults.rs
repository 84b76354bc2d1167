//! A client on a slow and broken network, as in docs/testing-your-service.md.

use std::error::Error;
use std::time::Duration;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::{Code, Request, Response, Server, Status};
use thalweg_link::{Link, LinkOptions};

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

struct MyGreeter;

impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let message = format!("Hello {}!", request.into_inner().name);
        Ok(Response::new(HelloReply { message }))
    }
}

#[tokio::test]
async fn client_gives_up_on_a_silent_network() -> Result<(), Box<dyn Error>> {
    let server = Server::builder().add_service(GreeterServer::new(MyGreeter));
    let server = server.bind(&["127.0.0.1:0".parse()?]).await?;
    let address = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());

    let options = LinkOptions::new("127.0.0.1:0".parse()?, address.parse()?);
    let link = Link::start(options.delay(Duration::from_millis(2)))?;
    let greeter = GreeterClient::connect(link.address().to_string()).await?;

    link.stall();
    let mut request = Request::new(HelloRequest { name: "Ada".to_owned() });
    request.set_timeout(Duration::from_millis(100));
    let status = greeter.say_hello(request).await.expect_err("no response");
    assert_eq!(status.code(), Code::DeadlineExceeded);

    link.resume();
    let response = greeter.say_hello(HelloRequest { name: "Ada".to_owned() }).await?;
    assert_eq!(response.into_inner().message, "Hello Ada!");
    Ok(())
}
