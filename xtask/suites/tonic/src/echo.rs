//! `streaming`, with two of its methods implemented, and `authentication`.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::pb::echo::{EchoRequest, EchoResponse, echo_server};
use crate::pb::unaryecho;

/// Time between two messages of an endless stream.
const INTERVAL: Duration = Duration::from_millis(200);

type Messages = ReceiverStream<Result<EchoResponse, Status>>;

pub struct Echo;

#[tonic::async_trait]
impl echo_server::Echo for Echo {
    async fn unary_echo(&self, _: Request<EchoRequest>) -> Result<Response<EchoResponse>, Status> {
        Err(Status::unimplemented("not implemented"))
    }

    type ServerStreamingEchoStream = Messages;

    async fn server_streaming_echo(
        &self,
        request: Request<EchoRequest>,
    ) -> Result<Response<Messages>, Status> {
        let message = request.into_inner().message;
        let (sender, receiver) = mpsc::channel(128);
        tokio::spawn(async move {
            while sender.send(Ok(EchoResponse { message: message.clone() })).await.is_ok() {
                tokio::time::sleep(INTERVAL).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn client_streaming_echo(
        &self,
        _: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<EchoResponse>, Status> {
        Err(Status::unimplemented("not implemented"))
    }

    type BidirectionalStreamingEchoStream = Messages;

    async fn bidirectional_streaming_echo(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<Messages>, Status> {
        let mut requests = request.into_inner();
        let (sender, receiver) = mpsc::channel(128);
        tokio::spawn(async move {
            while let Some(request) = requests.next().await {
                let response = request.map(|request| EchoResponse { message: request.message });
                if sender.send(response).await.is_err() {
                    break;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

pub struct UnaryEcho;

#[tonic::async_trait]
impl unaryecho::echo_server::Echo for UnaryEcho {
    async fn unary_echo(
        &self,
        request: Request<unaryecho::EchoRequest>,
    ) -> Result<Response<unaryecho::EchoResponse>, Status> {
        Ok(Response::new(unaryecho::EchoResponse { message: request.into_inner().message }))
    }
}

/// An interceptor: calls need a token.
pub fn check_auth(request: Request<()>) -> Result<Request<()>, Status> {
    match request.metadata().get("authorization") {
        Some(token) if token == "Bearer some-secret-token" => Ok(request),
        _ => Err(Status::unauthenticated("No valid auth token")),
    }
}
