//! Prints a greeter's response. Nothing in this source refers to the replacement of tonic.

use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};

mod helloworld {
    tonic::include_proto!("helloworld");
}

struct MyGreeter;

#[tonic::async_trait]
impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let message = format!("Hello {}!", request.into_inner().name);
        Ok(Response::new(HelloReply { message }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = Server::builder().add_service(GreeterServer::new(MyGreeter));
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    let mut client = GreeterClient::connect(format!("http://{address}")).await?;
    let reply = client.say_hello(HelloRequest { name: "tonic".to_owned() }).await?;
    println!("{}", reply.into_inner().message);
    Ok(())
}
