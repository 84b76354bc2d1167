//! A client under observation, and servers that report their load: the step `decisions` of `cargo xtask test` compares
//! them with grpc-go's.
//!
//! Reads a JSON object per line and answers each with one:
//!
//! - `{"open": {"servers": ["127.0.0.1:1"], "service_config": "{}"}}` replaces the channel. The answer is `{}`, or
//!   `{"rejected": "…"}` with the error in the service config.
//! - `{"call": {"timeout_ms": 100, "stream": false, "key": "a"}}` makes a call, whose code the answer has, named as in
//!   grpc-go: `{"code": "Unavailable"}`. The key, if it is not empty, is sent as header `x-key`.
//! - `{"serve": [{"qps": 100, "eps": 0, "cpu": 0.5, "application": 0}]}` starts a server for each load, which it
//!   reports in trailers and out of band: `{"servers": ["127.0.0.1:1"]}`.
//! - `{"count": {}}` asks how many calls each of these got: `{"counts": [5]}`.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use thalweg::channel::EndpointList;
use thalweg::server::{Methods, Service};
use thalweg::{Channel, Code, Request, Response, Server, ServiceOptions, Status};
use thalweg_load::services::BenchmarkWorker;
use thalweg_load::services::proto::benchmark_service_client::BenchmarkServiceClient;
use thalweg_load::services::proto::benchmark_service_server::BenchmarkServiceServer;
use thalweg_load::services::proto::{SimpleRequest, SimpleResponse};
use thalweg_services::orca::ServerMetrics;

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Command {
    Open { servers: Vec<SocketAddr>, service_config: String },
    Call { timeout_ms: u64, stream: bool, key: String },
    Serve(Vec<Load>),
    Count {},
}

/// The load that a server reports.
#[derive(Deserialize)]
struct Load {
    qps: f64,
    eps: f64,
    cpu: f64,
    application: f64,
}

/// Less than any interval that a client asks for.
const REPORT_INTERVAL_MIN: Duration = Duration::from_millis(10);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut channel = None;
    let mut reporters: Vec<Arc<Reporter>> = Vec::new();
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
            Command::Serve(loads) => {
                let mut servers = Vec::new();
                for load in loads {
                    let reporter = Arc::new(Reporter::default());
                    servers.push(reporter.start(&load).await?);
                    reporters.push(reporter);
                }
                json!({ "servers": servers })
            }
            Command::Count {} => {
                let counts = reporters.iter().map(|reporter| reporter.calls.load(Ordering::Relaxed));
                json!({ "counts": counts.collect::<Vec<u64>>() })
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

/// A server that counts its calls.
#[derive(Default)]
struct Reporter {
    calls: AtomicU64,
}

impl Reporter {
    /// Starts the server, which reports `load`, and returns its address.
    async fn start(self: &Arc<Self>, load: &Load) -> Result<String, Box<dyn Error>> {
        let metrics = ServerMetrics::new();
        metrics.set_qps(load.qps);
        metrics.set_eps(load.eps);
        metrics.set_cpu_utilization(load.cpu);
        metrics.set_application_utilization(load.application);
        let server = Server::builder()
            .interceptor(metrics.per_call())
            .add_service(metrics.service().interval_min(REPORT_INTERVAL_MIN))
            .add_service(ReporterServer(Arc::clone(self)));
        let bound = server.bind(&["127.0.0.1:0".parse()?]).await?;
        let address = bound.local_addresses()[0].to_string();
        tokio::spawn(bound.serve());
        Ok(address)
    }

    #[expect(clippy::unused_async, reason = "a handler")]
    async fn respond(self: Arc<Self>) -> Result<Response<SimpleResponse>, Status> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(Response::new(SimpleResponse::default()))
    }
}

struct ReporterServer(Arc<Reporter>);

impl Service for ReporterServer {
    const NAME: &'static str = <BenchmarkServiceServer<BenchmarkWorker> as Service>::NAME;
    const FILE_DESCRIPTOR_SET: &'static [u8] =
        <BenchmarkServiceServer<BenchmarkWorker> as Service>::FILE_DESCRIPTOR_SET;

    fn register(self, methods: &mut Methods<'_>) {
        methods.unary(
            "UnaryCall",
            &self.0,
            &ServiceOptions::default(),
            |reporter, _: Request<SimpleRequest>| reporter.respond(),
        );
    }
}

/// The name of a code in grpc-go.
fn name(code: Code) -> String {
    match code {
        Code::Ok => "OK".to_owned(),
        Code::Cancelled => "Canceled".to_owned(),
        other => format!("{other:?}"),
    }
}
