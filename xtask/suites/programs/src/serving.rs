//! The server: stubs of the services called by the programs, and services of tonic's own crates.

use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic_web::GrpcWebLayer;

use crate::outcome::Outcome;
use crate::{console, flight, forest, pubsub, qdrant, telemetry, workload, xds};

/// Serves at the address, and the Workload API at the UNIX socket.
pub async fn serve(address: &str, socket: &str) -> Outcome {
    let (reporter, health) = tonic_health::server::health_reporter();
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    let collector = telemetry::Collector::new(reporter);
    let over_tcp = Server::builder()
        .layer(GrpcWebLayer::new())
        .add_service(health)
        .add_service(reflection)
        .add_service(collector.traces())
        .add_service(collector.metrics())
        .add_service(collector.logs())
        .add_service(qdrant::collections())
        .add_service(qdrant::points())
        .add_service(qdrant::health())
        .add_service(flight::serve())
        .add_service(forest::serve())
        .add_service(console::serve())
        .add_service(pubsub::publisher())
        .add_service(pubsub::subscriber())
        .add_service(xds::serve(address)?)
        .serve(address.parse()?);
    let listener = UnixListenerStream::new(UnixListener::bind(socket)?);
    let over_socket = Server::builder().add_service(workload::serve()).serve_with_incoming(listener);
    tokio::try_join!(over_tcp, over_socket)?;
    Ok(())
}
