//! Prints a greeter's response.

use thalweg::{Channel, Request, Response, Server, Status};

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};

mod helloworld {
    thalweg::include_proto!("helloworld");
}

struct MyGreeter;

impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let message = format!("Hello {}!", request.into_inner().name);
        Ok(Response::new(HelloReply { message }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder().add_service(GreeterServer::new(MyGreeter));
    let server = server.bind(&["127.0.0.1:0".parse()?]).await?;
    let address = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    let client = GreeterClient::new(Channel::builder(address).connect().await?);
    let reply = client.say_hello(HelloRequest { name: "packages".to_owned() }).await?;
    println!("{}", reply.into_inner().message);
    Ok(())
}
