//! Passes metadata over the wire, extensions within a process, and the connection info to handlers.
//!
//! Run it with `cargo run -p thalweg-examples --example extensions`. It prints:
//!
//! ```text
//! Hello world: trace 42, from 127.0.0.1
//! answered in metadata: trace 42
//! ```

use std::error::Error;
use std::sync::Arc;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::{Channel, ConnectionInfo, Request, Response, Server, Status};

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

/// A value that the interceptor extracts for handlers.
#[derive(Clone, Copy)]
struct Trace(u32);

struct MyGreeter;

impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        // Extensions are looked up by type.
        let Trace(trace) =
            request.extensions().get().copied().ok_or_else(|| Status::internal("no interceptor ran"))?;
        let connection = request.extensions().get::<Arc<ConnectionInfo>>();
        let client = connection.and_then(|connection| connection.remote_addr());
        let client = client.map_or("somewhere".to_owned(), |address| address.ip().to_string());
        let name = request.into_inner().name;
        let message = format!("Hello {name}: trace {trace}, from {client}");
        let mut response = Response::new(HelloReply { message });
        // Extensions stay in the process. Use metadata for values that the client needs.
        response.metadata_mut().insert("x-trace", trace.into());
        Ok(response)
    }
}

/// The server's interceptor. Parses the metadata once, for all handlers.
fn extract_trace(mut request: Request<()>) -> Result<Request<()>, Status> {
    let text = request.metadata().get("x-trace").and_then(|value| value.to_str().ok());
    let trace = text.and_then(|text| text.parse().ok());
    let trace = trace.ok_or_else(|| Status::invalid_argument("x-trace is not a number"))?;
    request.extensions_mut().insert(Trace(trace));
    Ok(request)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let service = GreeterServer::with_interceptor(MyGreeter, extract_trace);
    // Without TLS, connection info is passed to handlers only if enabled here.
    let server = Server::builder().connection_info(true).add_service(service);
    let server = server.bind(&["127.0.0.1:0".parse()?]).await?;
    let channel = Channel::builder(server.local_addresses()[0].to_string()).connect_lazy()?;
    tokio::spawn(server.serve());

    // A client's extensions are visible to its own interceptors only. This one writes them into metadata.
    let greeter = GreeterClient::with_interceptor(channel, |mut request| {
        if let Some(Trace(trace)) = request.extensions().get().copied() {
            request.metadata_mut().insert("x-trace", trace.into());
        }
        Ok(request)
    });
    let mut request = Request::new(HelloRequest { name: "world".to_owned() });
    request.extensions_mut().insert(Trace(42));
    let response = greeter.say_hello(request).await?;
    println!("{}", response.get_ref().message);
    let trace = response.metadata().get("x-trace").ok_or("the answer has no trace")?;
    println!("answered in metadata: trace {}", trace.to_str()?);
    Ok(())
}
