//! The server.

use std::error::Error;
use std::net::SocketAddr;

use tokio::signal::unix::{SignalKind, signal};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use crate::benchmark::benchmark_service_server::{BenchmarkService, BenchmarkServiceServer};
use crate::messages::{SimpleRequest, SimpleResponse, payload};

/// Above the largest message of any study.
pub const MESSAGE_SIZE_MAX: usize = 64 << 20;

struct Worker;

#[tonic::async_trait]
impl BenchmarkService for Worker {
    async fn unary_call(&self, request: Request<SimpleRequest>) -> Result<Response<SimpleResponse>, Status> {
        let size = usize::try_from(request.get_ref().response_size);
        let size = size.map_err(|_| Status::invalid_argument("response_size is negative"))?;
        Ok(Response::new(SimpleResponse { payload: payload(size) }))
    }
}

pub async fn serve(listen: SocketAddr) -> Result<(), Box<dyn Error>> {
    let mut terminated = signal(SignalKind::terminate())?;
    let service = BenchmarkServiceServer::new(Worker)
        .max_decoding_message_size(MESSAGE_SIZE_MAX)
        .max_encoding_message_size(MESSAGE_SIZE_MAX);
    println!("tonic serves on {listen}");
    let serving = Server::builder().tcp_nodelay(true).add_service(service);
    let until = async move {
        terminated.recv().await;
    };
    Ok(serving.serve_with_shutdown(listen, until).await?)
}
