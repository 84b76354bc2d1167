//! Client or server whose messages are compressed both ways, for tests against other stacks:
//!
//! ```text
//! cargo run -p thalweg-load --example compressed -- server 10000 gzip
//! cargo run -p thalweg-load --example compressed -- client 10000 deflate
//! ```
//!
//! The server offers gRPC's `TestService`, and the client calls its `BenchmarkService`, like the suites' programs for
//! other stacks.

use std::error::Error;

use clap::{Parser, ValueEnum};
use thalweg::{Channel, Encoding, Request, Server};
use thalweg_load::services::InteropServer;
use thalweg_load::services::proto::benchmark_service_client::BenchmarkServiceClient;
use thalweg_load::services::proto::test_service_server::TestServiceServer;
use thalweg_load::services::proto::{Payload, SimpleRequest};

/// Client or server whose messages are compressed both ways
#[derive(Debug, Parser)]
struct Args {
    end: End,
    port: u16,
    #[arg(value_parser = |name: &str| {
        Encoding::from_name(name.as_bytes()).ok_or_else(|| format!("unknown encoding {name:?}"))
    })]
    encoding: Encoding,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum End {
    Server,
    Client,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Args { end, port, encoding } = Args::parse();
    match end {
        End::Server => serve(port, encoding).await,
        End::Client => call(port, encoding).await,
    }
}

async fn serve(port: u16, encoding: Encoding) -> Result<(), Box<dyn Error>> {
    let service = TestServiceServer::new(InteropServer).max_decoding_message_size(16 << 20);
    let server = Server::builder().send_compressed(encoding).add_service(service);
    let server = server.bind(&[format!("127.0.0.1:{port}").parse()?]).await?;
    server.serve_until(async { tokio::signal::ctrl_c().await.unwrap_or_default() }).await?;
    Ok(())
}

/// Sizes around the compression threshold and buffer growth, and larger than a window.
const SIZES: [i32; 8] = [0, 1, 1023, 1024, 16_384, 65_536, 1_500_000, 4 << 20];
const MESSAGES: usize = 3;

async fn call(port: u16, encoding: Encoding) -> Result<(), Box<dyn Error>> {
    let channel = Channel::builder(format!("127.0.0.1:{port}")).send_compressed(encoding).connect().await?;
    let client = BenchmarkServiceClient::new(channel).max_decoding_message_size(16 << 20);
    for size in SIZES {
        let body = vec![0; size as usize].into();
        let request = SimpleRequest {
            response_size: size,
            payload: Some(Payload { body, ..Payload::default() }),
            ..SimpleRequest::default()
        };
        let reply = client.unary_call(request.clone()).await?.into_inner();
        check(size, reply.payload)?;
        let requests = Request::new(tokio_stream::iter(vec![request; MESSAGES]));
        let mut replies = client.streaming_call(requests).await?.into_inner();
        for _ in 0..MESSAGES {
            check(size, replies.message().await?.ok_or("a reply is missing")?.payload)?;
        }
        println!("ok    {} {size}", encoding.name());
    }
    Ok(())
}

fn check(size: i32, payload: Option<Payload>) -> Result<(), Box<dyn Error>> {
    let found = payload.map_or(0, |payload| payload.body.len());
    if found == size as usize { Ok(()) } else { Err(format!("{found} bytes came, not {size}").into()) }
}
