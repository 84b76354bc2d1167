//! Serves health checks next to another service, on one connection.
//!
//! Run it with `cargo run -p thalweg-examples --example health`. It prints:
//!
//! ```text
//! helloworld.Greeter: Serving
//! the server: Serving
//! helloworld.Greeter: NotServing
//! helloworld.Greeter: Serving
//! Hello world!
//! ```

use std::error::Error;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{self, Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::{Channel, Request, Response, Server, Status};
use thalweg_services::health::pb::HealthCheckRequest;
use thalweg_services::health::pb::health_client::HealthClient;
use thalweg_services::health::{self, HealthReporter};

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

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The server as a whole is serving from the start; the program reports the state of each service. The reporter can
    // be cloned.
    let reporter = HealthReporter::new();
    reporter.set_serving::<GreeterServer<MyGreeter>>();
    let server = Server::builder().add_service(GreeterServer::new(MyGreeter)).add_service(reporter.service());
    let server = server.bind(&["127.0.0.1:0".parse()?]).await?;
    let channel = Channel::builder(server.local_addresses()[0].to_string()).connect_lazy()?;
    tokio::spawn(server.serve());

    // A single check, as a probe makes it.
    let name = greeter_server::SERVICE_NAME;
    println!("{name}: {:?}", health::check(&channel, name).await?);
    println!("the server: {:?}", health::check(&channel, "").await?);

    // A stream, as a load balancer uses it. The first response comes at once, further ones on each change.
    let request = HealthCheckRequest { service: name.to_owned() };
    let mut responses = HealthClient::new(channel.clone()).watch(request).await?.into_inner();
    responses.message().await?;
    reporter.set_not_serving::<GreeterServer<MyGreeter>>();
    println!("{name}: {:?}", responses.message().await?.ok_or("the watch ended")?.status());
    reporter.set_serving::<GreeterServer<MyGreeter>>();
    println!("{name}: {:?}", responses.message().await?.ok_or("the watch ended")?.status());

    // All clients of a channel share its connections.
    let greeter = GreeterClient::new(channel);
    let response = greeter.say_hello(HelloRequest { name: "world".to_owned() }).await?;
    println!("{}", response.into_inner().message);
    Ok(())
}
