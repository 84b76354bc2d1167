//! A client under observation: the step `decisions` of `cargo xtask test` compares it with grpc-go's.
//!
//! Reads a JSON object per line and answers each with one:
//!
//! - `{"open": {"servers": ["127.0.0.1:1"], "service_config": "{}"}}` replaces the channel. The answer is `{}`, or
//!   `{"rejected": "…"}` with the error in the service config.
//! - `{"call": {"timeout_ms": 100, "stream": false, "key": "a"}}` makes a call, whose code the answer has, named as in
//!   grpc-go: `{"code": "Unavailable"}`. The key, if it is not empty, is sent as header `x-key`.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use thalweg::channel::EndpointList;
use thalweg::{Channel, Code, Request, Status};
use thalweg_load::services::proto::SimpleRequest;
use thalweg_load::services::proto::benchmark_service_client::BenchmarkServiceClient;

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Command {
    Open { servers: Vec<SocketAddr>, service_config: String },
    Call { timeout_ms: u64, stream: bool, key: String },
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut channel = None;
    for line in std::io::stdin().lines() {
        let answer: Value = match serde_json::from_str(&line?)? {
            Command::Open { servers, service_config } => match open(servers, service_config) {
                Ok(opened) => {
                    channel = Some(opened);
                    json!({})
                }
                Err(error) => json!({ "rejected": error.to_string() }),
            },
            Command::Call { timeout_ms, stream, key } => {
                let channel = channel.clone().ok_or("no channel is open")?;
                let client = BenchmarkServiceClient::new(channel);
                let outcome = call(&client, Duration::from_millis(timeout_ms), stream, &key).await;
                json!({ "code": name(outcome.err().map_or(Code::Ok, |status| status.code())) })
            }
        };
        println!("{answer}");
    }
    Ok(())
}

fn open(servers: Vec<SocketAddr>, service_config: String) -> Result<Channel, Box<dyn Error>> {
    let channel = Channel::builder("fleet").resolver(EndpointList::new(servers));
    Ok(channel.service_config(service_config).connect_lazy()?)
}

async fn call(
    client: &BenchmarkServiceClient,
    timeout: Duration,
    is_stream: bool,
    key: &str,
) -> Result<(), Status> {
    if !is_stream {
        let mut request = Request::new(SimpleRequest::default());
        request.set_timeout(timeout);
        if !key.is_empty() {
            let value = key.parse().map_err(|_| Status::new(Code::Internal, "invalid key"))?;
            request.metadata_mut().insert("x-key", value);
        }
        return client.unary_call(request).await.map(drop);
    }
    let mut request = Request::new(tokio_stream::iter([SimpleRequest::default(), SimpleRequest::default()]));
    request.set_timeout(timeout);
    let mut responses = client.streaming_call(request).await?.into_inner();
    while responses.message().await?.is_some() {}
    Ok(())
}

/// The name of a code in grpc-go.
fn name(code: Code) -> String {
    match code {
        Code::Ok => "OK".to_owned(),
        Code::Cancelled => "Canceled".to_owned(),
        other => format!("{other:?}"),
    }
}
