//! Serves reflection for grpcurl and similar tools, and queries it as they do.
//!
//! Run it with `cargo run -p thalweg-examples --example reflection`. It prints:
//!
//! ```text
//! grpc.reflection.v1.ServerReflection
//! grpc.reflection.v1alpha.ServerReflection
//! helloworld.Greeter
//! helloworld.Greeter is in helloworld.proto
//! ```

use std::error::Error;

use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use prost_types::FileDescriptorProto;
use thalweg::prost::Message as _;
use thalweg::{Channel, Request, Response, Server, Status};
use thalweg_services::reflection::Reflection;
use thalweg_services::reflection::pb::ServerReflectionRequest;
use thalweg_services::reflection::pb::server_reflection_client::ServerReflectionClient;
use thalweg_services::reflection::pb::server_reflection_request::MessageRequest;
use thalweg_services::reflection::pb::server_reflection_response::MessageResponse;

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

/// The descriptors that `build.rs` wrote next to the generated code.
const DESCRIPTORS: &[u8] = thalweg::include_file_descriptor_set!("helloworld");

struct MyGreeter;

impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let name = request.into_inner().name;
        Ok(Response::new(HelloReply { message: format!("Hello {name}!") }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let reflection = Reflection::builder().descriptors(DESCRIPTORS).build()?;
    let server = Server::builder().add_service(GreeterServer::new(MyGreeter)).add_service(reflection);
    let server = server.bind(&["127.0.0.1:0".parse()?]).await?;
    let channel = Channel::builder(server.local_addresses()[0].to_string()).connect_lazy()?;
    tokio::spawn(server.serve());

    let symbol = "helloworld.Greeter".to_owned();
    let message_requests =
        [MessageRequest::ListServices(String::new()), MessageRequest::FileContainingSymbol(symbol.clone())];
    let requests = message_requests.map(|message_request| ServerReflectionRequest {
        message_request: Some(message_request),
        ..ServerReflectionRequest::default()
    });
    let client = ServerReflectionClient::new(channel);
    let mut responses = client.server_reflection_info(tokio_stream::iter(requests)).await?.into_inner();
    while let Some(response) = responses.message().await? {
        match response.message_response {
            Some(MessageResponse::ListServicesResponse(list)) => {
                list.service.iter().for_each(|service| println!("{}", service.name));
            }
            Some(MessageResponse::FileDescriptorResponse(files)) => {
                let file = files.file_descriptor_proto.first().ok_or("no file has it")?;
                println!("{symbol} is in {}", FileDescriptorProto::decode(&**file)?.name());
            }
            other => return Err(format!("an answer to another question: {other:?}").into()),
        }
    }
    Ok(())
}
