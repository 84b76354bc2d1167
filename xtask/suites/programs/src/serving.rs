//! The server: stubs of the services called by the programs, and services of tonic's own crates.

use tonic::transport::Server;
use tonic_web::GrpcWebLayer;

use crate::outcome::Outcome;
use crate::{qdrant, telemetry};

pub async fn serve(address: &str) -> Outcome {
    let (reporter, health) = tonic_health::server::health_reporter();
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    let collector = telemetry::Collector::new(reporter);
    Server::builder()
        .layer(GrpcWebLayer::new())
        .add_service(health)
        .add_service(reflection)
        .add_service(collector.traces())
        .add_service(collector.metrics())
        .add_service(collector.logs())
        .add_service(qdrant::collections())
        .add_service(qdrant::points())
        .add_service(qdrant::health())
        .serve(address.parse()?)
        .await?;
    Ok(())
}
