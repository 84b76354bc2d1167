//! Greets each caller by name: `cargo run -p thalweg-examples --bin helloworld-server -- [ADDRESS]`.

use std::env;
use std::error::Error;

use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::{Request, Response, Server, Status};

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

struct MyGreeter;

impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let name = request.into_inner().name;
        if name.is_empty() {
            return Err(Status::invalid_argument("say your name"));
        }
        Ok(Response::new(HelloReply { message: format!("Hello {name}!") }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:50051".to_owned());
    let server =
        Server::builder().add_service(GreeterServer::new(MyGreeter)).bind(&[address.parse()?]).await?;
    println!("listening on {}", server.local_addresses()[0]);
    server.serve_until(async { tokio::signal::ctrl_c().await.unwrap_or_default() }).await?;
    Ok(())
}
