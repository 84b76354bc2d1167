//! Tests a service through an in-memory pipe, and by calling its handler directly.
//!
//! Run it with `cargo run -p thalweg-examples --example mock`. It prints:
//!
//! ```text
//! through a pipe in memory: Hello Ada!
//! as a function: Hello Grace!
//! ```

use std::error::Error;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::{Channel, Request, Response, Server, Status};

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

/// Creates a channel to a service in the same process. Only the network is missing, so it suits tests of servers, and
/// tests of clients with a mock server.
fn in_memory(service: GreeterServer<impl Greeter>) -> Result<Channel, Box<dyn Error>> {
    // The target only names the server.
    let builder = Channel::builder("mock:1").connector(move || {
        let (client, server) = tokio::io::duplex(64 * 1024);
        // Runs for each connection that the channel opens. Clones serve the same service.
        tokio::spawn(Server::builder().add_service(service.clone()).serve_connection(server));
        async { Ok(client) }
    });
    Ok(builder.connect_lazy()?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let greeter = GreeterClient::new(in_memory(GreeterServer::new(MyGreeter))?);
    let response = greeter.say_hello(HelloRequest { name: "Ada".to_owned() }).await?;
    println!("through a pipe in memory: {}", response.into_inner().message);

    // A handler is a plain method. For streaming requests, create the stream with `Streaming::from_stream`.
    let response = MyGreeter.say_hello(Request::new(HelloRequest { name: "Grace".to_owned() })).await?;
    println!("as a function: {}", response.into_inner().message);
    Ok(())
}
