//! Sends errors with details that programs can read, using the crate `tonic-types`. The feature `tonic` converts
//! between tonic's `Status`, which that crate extends, and Thalweg's.
//!
//! Run it with `cargo run -p thalweg-examples --example rich-errors`. It prints:
//!
//! ```text
//! Hello Ada!
//! InvalidArgument: the request is not complete; name: say your name; see https://example.com/greeting
//! ResourceExhausted: I am greeting others; TOO_MANY_GREETINGS of example.com; try again in 3s
//! ```
//!
//! The details travel as gRPC's `google.rpc.Status` in `grpc-status-details-bin`, which other languages' clients also
//! read.

use std::error::Error;
use std::time::Duration;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::{Channel, Code, Request, Response, Server, Status};
use tonic_types::{ErrorDetails, StatusExt};

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

struct MyGreeter;

impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let name = request.into_inner().name;
        let mut details = ErrorDetails::new();
        match &*name {
            "" => {
                details.add_bad_request_violation("name", "say your name");
                details.set_help(vec![]).add_help_link("how to greet", "https://example.com/greeting");
                let (code, text) = (Code::InvalidArgument, "the request is not complete");
                Err(tonic::Status::with_error_details(code.into(), text, details).into())
            }
            "busy" => {
                details.set_retry_info(Some(Duration::from_secs(3)));
                details.set_error_info("TOO_MANY_GREETINGS", "example.com", [("limit".into(), "1".into())]);
                let (code, text) = (Code::ResourceExhausted, "I am greeting others");
                Err(tonic::Status::with_error_details(code.into(), text, details).into())
            }
            name => Ok(Response::new(HelloReply { message: format!("Hello {name}!") })),
        }
    }
}

/// Formats the response, or the error with its details.
fn describe(response: Result<Response<HelloReply>, Status>) -> String {
    let status = match response {
        Ok(response) => return response.into_inner().message,
        Err(status) => status,
    };
    let mut lines = vec![format!("{:?}: {}", status.code(), status.message())];
    let details = tonic::Status::from(status).get_error_details();
    for violation in details.bad_request().iter().flat_map(|bad_request| &bad_request.field_violations) {
        lines.push(format!("{}: {}", violation.field, violation.description));
    }
    for link in details.help().iter().flat_map(|help| &help.links) {
        lines.push(format!("see {}", link.url));
    }
    if let Some(info) = details.error_info() {
        lines.push(format!("{} of {}", info.reason, info.domain));
    }
    if let Some(delay) = details.retry_info().and_then(|info| info.retry_delay) {
        lines.push(format!("try again in {delay:?}"));
    }
    lines.join("; ")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::builder().add_service(GreeterServer::new(MyGreeter));
    let server = server.bind(&["127.0.0.1:0".parse()?]).await?;
    let channel = Channel::builder(server.local_addresses()[0].to_string()).connect_lazy()?;
    tokio::spawn(server.serve());
    let greeter = GreeterClient::new(channel);
    for name in ["Ada", "", "busy"] {
        println!("{}", describe(greeter.say_hello(HelloRequest { name: name.to_owned() }).await));
    }
    Ok(())
}
