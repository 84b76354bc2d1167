//! Exposes metrics of a server and a client to Prometheus.
//!
//! Run it with `cargo run -p thalweg-examples --example prometheus`, then `curl http://127.0.0.1:9464/metrics`.
//! OpenTelemetry's Prometheus exporter renders the metrics; hyper serves them on a separate port.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Encoder, Registry, TextEncoder};
use thalweg::{Channel, ListenAddress, Metrics, Request, Response, Server, Status};
use tokio::net::TcpListener;

pub(crate) mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

struct MyGreeter;

impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let name = request.into_inner().name;
        if name.is_empty() {
            return Err(Status::invalid_argument("say your name"));
        }
        Ok(Response::new(HelloReply { message: format!("Hello {name}!") }))
    }
}

/// A client of a running server, and the address of the metrics of both.
pub(crate) struct RunningExample {
    pub(crate) greeter: GreeterClient<Channel>,
    pub(crate) metrics: SocketAddr,
    /// Collects the metrics until it is dropped.
    _provider: SdkMeterProvider,
}

/// Starts the gRPC server, a client of it, and the HTTP server for the metrics.
pub(crate) async fn start(grpc: ListenAddress, http: &str) -> Result<RunningExample, Box<dyn Error>> {
    let registry = Registry::new();
    let exporter = opentelemetry_prometheus::exporter().with_registry(registry.clone()).build()?;
    let provider = SdkMeterProvider::builder().with_reader(exporter).build();
    let metrics = Metrics::new(&provider);

    let server = Server::builder().add_service(GreeterServer::new(MyGreeter)).metrics(metrics.clone());
    let server = server.bind(&[grpc]).await?;
    let target = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    let channel = Channel::builder(target).metrics(metrics).connect().await?;

    let listener = TcpListener::bind(http).await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve_metrics(listener, registry));
    Ok(RunningExample { greeter: GreeterClient::new(channel), metrics: address, _provider: provider })
}

/// Serves `GET /metrics` until the program ends.
async fn serve_metrics(listener: TcpListener, registry: Registry) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Temporary, for example no free file descriptors.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let registry = registry.clone();
        let service = service_fn(move |request| {
            let response = serve_request(&request, &registry);
            async { Ok::<_, Infallible>(response) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

fn serve_request(request: &hyper::Request<Incoming>, registry: &Registry) -> hyper::Response<Full<Bytes>> {
    let (encoder, mut text) = (TextEncoder::new(), Vec::new());
    let status = if request.uri().path() != "/metrics" {
        StatusCode::NOT_FOUND
    } else if request.method() != Method::GET {
        StatusCode::METHOD_NOT_ALLOWED
    } else if encoder.encode(&registry.gather(), &mut text).is_err() {
        StatusCode::INTERNAL_SERVER_ERROR
    } else {
        StatusCode::OK
    };
    let mut response = hyper::Response::new(Full::from(text));
    *response.status_mut() = status;
    let prometheus_content_type = HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(CONTENT_TYPE, prometheus_content_type);
    response
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let running = start("127.0.0.1:50051".parse()?, "127.0.0.1:9464").await?;
    println!("http://{}/metrics has the metrics; a call comes each second", running.metrics);
    for name in ["Ada", "Grace", ""].into_iter().cycle() {
        // The server rejects the empty name, and the metrics show it.
        let _ = running.greeter.say_hello(HelloRequest { name: name.to_owned() }).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}
