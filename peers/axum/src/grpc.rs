//! `thalweg.lab.v1.Echo` on tonic.

use tonic::transport::Server;
use tonic::transport::server::Router;
use tonic::{Request, Response, Status};

use crate::proto::echo_server::{Echo, EchoServer};
use crate::proto::{Person, Strings};
use crate::stack_settings::{CONNECTION_WINDOW, FRAME_SIZE_MAX, MESSAGE_SIZE_MAX, STREAM_WINDOW};
use crate::times::{self, Times};

pub fn router() -> Router {
    let service = EchoServer::new(Echoing)
        .max_decoding_message_size(MESSAGE_SIZE_MAX)
        .max_encoding_message_size(MESSAGE_SIZE_MAX);
    Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_SIZE_MAX)
        .add_service(service)
}

struct Echoing;

#[tonic::async_trait]
impl Echo for Echoing {
    async fn echo_strings(&self, request: Request<Strings>) -> Result<Response<Strings>, Status> {
        Ok(echoed(request))
    }

    async fn echo_person(&self, request: Request<Person>) -> Result<Response<Person>, Status> {
        Ok(echoed(request))
    }
}

/// Echoes the request. The codec handles the bytes before and after, so only the handler's own times are visible here.
fn echoed<M>(request: Request<M>) -> Response<M> {
    if !request.metadata().contains_key(times::HEADER) {
        return Response::new(request.into_inner());
    }
    let mut times = Times { decoded: Some(times::now()), ..Times::default() };
    let mut response = Response::new(request.into_inner());
    times.handled = Some(times::now());
    let value = times.to_string().parse().expect("words and digits");
    response.metadata_mut().insert(times::HEADER, value);
    response
}
