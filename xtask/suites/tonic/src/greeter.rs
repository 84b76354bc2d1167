//! `richer-error`: an invalid name results in a status with details.

use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::pb::helloworld::{HelloReply, HelloRequest, greeter_server};

pub struct Greeter;

#[tonic::async_trait]
impl greeter_server::Greeter for Greeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let name = request.into_inner().name;
        let mut details = ErrorDetails::new();
        if name.is_empty() {
            details.add_bad_request_violation("name", "name cannot be empty");
        } else if name.len() > 40 {
            details.add_bad_request_violation("name", "name is too long");
        }
        if details.has_bad_request_violations() {
            details
                .add_help_link("description of link", "https://resource.example.local")
                .set_localized_message("en-US", "message for the user");
            let message = "request contains invalid arguments";
            return Err(Status::with_error_details(Code::InvalidArgument, message, details));
        }
        Ok(Response::new(HelloReply { message: format!("Hello {name}!") }))
    }
}
