//! Calls a target that has several addresses; the first server stops.
//!
//! Run it with `cargo run -p thalweg-examples --example failover`. It prints:
//!
//! ```text
//! Hello world, says the first
//! Hello world, says the second
//! ```

use std::error::Error;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::server::BoundServer;
use thalweg::{Request, Response, Server, Status};
use tokio::sync::oneshot;

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

struct NamedGreeter(&'static str);

impl Greeter for NamedGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let message = format!("Hello {}, says {}", request.into_inner().name, self.0);
        Ok(Response::new(HelloReply { message }))
    }
}

async fn server(name: &'static str) -> Result<BoundServer, Box<dyn Error>> {
    let service = GreeterServer::new(NamedGreeter(name));
    Ok(Server::builder().add_service(service).bind(&["127.0.0.1:0".parse()?]).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (first, second) = (server("the first").await?, server("the second").await?);
    // A connection uses the first address that accepts it. Names with several addresses work the same way; they are
    // resolved again for each connection.
    let target = format!("ipv4:{},{}", first.local_addresses()[0], second.local_addresses()[0]);
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = tokio::spawn(first.serve_until(async { stopped.await.unwrap_or_default() }));
    tokio::spawn(second.serve());

    let greeter = GreeterClient::connect(target).await?;
    let hello = || HelloRequest { name: "world".to_owned() };
    println!("{}", greeter.say_hello(hello()).await?.into_inner().message);
    // A graceful stop moves the clients to the next address; no call fails.
    drop(stop);
    shutdown.await??;
    println!("{}", greeter.say_hello(hello()).await?.into_inner().message);
    Ok(())
}
