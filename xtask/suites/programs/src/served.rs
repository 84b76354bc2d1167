//! `tonic-health`, `tonic-reflection` and `tonic-web` as published, with our server and our channel.

use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioExecutor;
use tokio_stream::StreamExt as _;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::outcome::Outcome;

pub async fn drive(address: &str) -> Outcome {
    let channel = Endpoint::from_shared(format!("http://{address}"))?.connect().await?;

    let mut health = HealthClient::new(channel.clone());
    let overall = health.check(HealthCheckRequest::default()).await?.into_inner();
    assert_eq!(overall.status, 1);
    let unknown = HealthCheckRequest { service: "nobody".to_owned() };
    assert_eq!(health.check(unknown).await.unwrap_err().code(), Code::NotFound);
    let mut watched = health.watch(HealthCheckRequest::default()).await?.into_inner();
    assert_eq!(watched.message().await?.map(|response| response.status), Some(1));
    drop(watched);

    let requests =
        [MessageRequest::ListServices(String::new()), MessageRequest::FileContainingSymbol("no".into())];
    let requests = requests
        .map(|request| ServerReflectionRequest { host: String::new(), message_request: Some(request) });
    let mut reflection = ServerReflectionClient::new(channel);
    let responses = reflection.server_reflection_info(tokio_stream::iter(requests)).await?.into_inner();
    let responses: Vec<_> = responses.collect().await;
    assert_eq!(responses.len(), 2);
    match responses[0].as_ref().map(|response| response.message_response.as_ref()) {
        Ok(Some(MessageResponse::ListServicesResponse(list))) => {
            let names: Vec<&str> = list.service.iter().map(|service| service.name.as_str()).collect();
            assert!(names.contains(&"grpc.health.v1.Health"), "{names:?}");
        }
        other => return Err(format!("unexpected response to a list of services: {other:?}").into()),
    }
    assert_eq!(responses[1].as_ref().unwrap_err().code(), Code::NotFound);
    web(address).await
}

/// A call for the rates.
pub async fn check(mut client: HealthClient<Channel>) -> Outcome {
    client.check(HealthCheckRequest::default()).await?;
    Ok(())
}

/// A browser's request, from a client without gRPC support: the trailers are in the body.
async fn web(address: &str) -> Outcome {
    let request = http::Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc-web+proto")
        .header("accept", "application/grpc-web+proto")
        .body(Full::new(bytes::Bytes::from_static(&[0, 0, 0, 0, 0])))?;
    let client =
        hyper_util::client::legacy::Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let response = client.request(request).await?;
    assert_eq!(response.headers()["content-type"], "application/grpc-web+proto");
    let body = response.into_body().collect().await?.to_bytes();
    // A message of two bytes, `status: SERVING`, then a frame of trailers.
    assert_eq!(body[..8], [0, 0, 0, 0, 2, 8, 1, 0x80]);
    let trailers = std::str::from_utf8(&body[12..])?;
    assert!(trailers.contains("grpc-status:0"), "{trailers}");
    Ok(())
}
