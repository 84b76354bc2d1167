//! Measures small calls during a stream of large messages. They alternate between three modes:
//!
//! - the stream is on the calls' connection;
//! - the stream is on another connection of this process to the same server;
//! - there is no stream.
//!
//! The processor does the same work in the first two, so the difference is the interference on one connection.
//!
//! ```text
//! cargo run --release -p thalweg-load --example interference -- 127.0.0.1:50051 --stream server -c 4
//! ```
//!
//! Prints a line of JSON for each round and mode: percentiles of the small calls over both windows, and the bytes moved
//! by the stream.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use hdrhistogram::Histogram;
use serde_json::json;
use thalweg::{Channel, Request, Status, Stream};
use thalweg_load::services::proto::benchmark_service_client::BenchmarkServiceClient;
use thalweg_load::services::proto::{Payload, SimpleRequest};
use thalweg_load::services::zeros;
use thalweg_measure::distribution::LATENCY_NS_MAX;
use tokio::task::{JoinHandle, JoinSet};

/// Payload of a message of 4 MiB, the default maximum of a receiver.
const BODY_BYTES: i32 = (4 << 20) - 64;
/// Time for the stream to start or to end.
const PAUSE: Duration = Duration::from_millis(150);

/// Measures empty unary calls during a stream of 4 MiB messages
#[derive(Clone, Debug, Parser)]
struct Args {
    /// A gRPC target that serves `grpc.testing.BenchmarkService`
    target: String,
    /// Direction of the stream
    #[arg(long, value_enum)]
    stream: Direction,
    /// Small calls in flight
    #[arg(short = 'c', long, default_value_t = 1)]
    in_flight: usize,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Length of each of the two windows per mode and round
    #[arg(long, default_value_t = 500)]
    window_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Direction {
    Client,
    Server,
}

/// Connection of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamPlacement {
    SameConnection,
    OtherConnection,
    Nowhere,
}

const PLACEMENTS: [StreamPlacement; 3] =
    [StreamPlacement::SameConnection, StreamPlacement::OtherConnection, StreamPlacement::Nowhere];

/// Results of one mode in a round.
struct WindowFigures {
    latency_ns: Histogram<u64>,
    stream_bytes: u64,
    measured: Duration,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let connect = async || Channel::builder(&args.target).connect().await.map(BenchmarkServiceClient::new);
    let (calls, other) = (connect().await?, connect().await?);
    for round in 0..args.rounds {
        let mut found = [WindowFigures::new()?, WindowFigures::new()?, WindowFigures::new()?];
        // Forwards and backwards, so that drift affects all modes equally.
        for index in [0, 1, 2, 2, 1, 0] {
            window(&args, PLACEMENTS[index], &calls, &other, &mut found[index]).await?;
        }
        for (place, found) in PLACEMENTS.iter().zip(&found) {
            println!("{}", found.line(round, *place));
        }
    }
    Ok(())
}

async fn window(
    args: &Args,
    place: StreamPlacement,
    calls: &BenchmarkServiceClient,
    other: &BenchmarkServiceClient,
    found: &mut WindowFigures,
) -> Result<(), Status> {
    let stream = match place {
        StreamPlacement::SameConnection => Some(LargeStream::start(args.stream, calls.clone())),
        StreamPlacement::OtherConnection => Some(LargeStream::start(args.stream, other.clone())),
        StreamPlacement::Nowhere => None,
    };
    tokio::time::sleep(PAUSE).await;
    let moved = || stream.as_ref().map_or(0, |stream| stream.moved_bytes.load(Ordering::Relaxed));
    let (moved_before, begin) = (moved(), Instant::now());
    let until = begin + Duration::from_millis(args.window_ms);
    let mut callers = JoinSet::new();
    for _ in 0..args.in_flight {
        callers.spawn(call_until(until, calls.clone()));
    }
    for latencies in callers.join_all().await {
        for latency in latencies? {
            found.latency_ns.saturating_record(latency.as_nanos() as u64);
        }
    }
    found.measured += begin.elapsed();
    found.stream_bytes += moved() - moved_before;
    match stream {
        Some(stream) => stream.end().await,
        None => Ok(()),
    }
}

/// Makes empty calls, one at a time.
async fn call_until(until: Instant, client: BenchmarkServiceClient) -> Result<Vec<Duration>, Status> {
    let mut latencies = Vec::new();
    let mut start = Instant::now();
    while start < until {
        client.unary_call(Request::new(SimpleRequest::default())).await?;
        let ended = Instant::now();
        latencies.push(ended - start);
        start = ended;
    }
    Ok(latencies)
}

impl WindowFigures {
    fn new() -> Result<Self, hdrhistogram::CreationError> {
        Ok(Self {
            latency_ns: Histogram::new_with_max(LATENCY_NS_MAX, 3)?,
            stream_bytes: 0,
            measured: Duration::ZERO,
        })
    }

    fn line(&self, round: usize, place: StreamPlacement) -> serde_json::Value {
        json!({
            "round": round,
            "stream": match place {
                StreamPlacement::SameConnection => "same-connection",
                StreamPlacement::OtherConnection => "other-connection",
                StreamPlacement::Nowhere => "none",
            },
            "calls": self.latency_ns.len(),
            "p50_ns": self.latency_ns.value_at_quantile(0.50),
            "p99_ns": self.latency_ns.value_at_quantile(0.99),
            "stream_bytes_per_s": self.stream_bytes as f64 / self.measured.as_secs_f64(),
        })
    }
}

/// A stream of large messages that runs until it is stopped.
struct LargeStream {
    ends: Arc<AtomicBool>,
    moved_bytes: Arc<AtomicU64>,
    task: JoinHandle<Result<(), Status>>,
}

impl LargeStream {
    fn start(direction: Direction, client: BenchmarkServiceClient) -> Self {
        let (ends, moved_bytes) = (Arc::default(), Arc::default());
        let messages = Messages { ends: Arc::clone(&ends), moved_bytes: Arc::clone(&moved_bytes) };
        let task = match direction {
            Direction::Client => tokio::spawn(send(client, messages)),
            Direction::Server => tokio::spawn(receive(client, messages)),
        };
        Self { ends, moved_bytes, task }
    }

    async fn end(self) -> Result<(), Status> {
        self.ends.store(true, Ordering::Relaxed);
        let outcome = self.task.await.map_err(|error| Status::internal(error.to_string()))?;
        tokio::time::sleep(PAUSE).await;
        outcome
    }
}

async fn send(client: BenchmarkServiceClient, messages: Messages) -> Result<(), Status> {
    client.streaming_from_client(Request::new(messages)).await?;
    Ok(())
}

async fn receive(client: BenchmarkServiceClient, messages: Messages) -> Result<(), Status> {
    let request = SimpleRequest { response_size: BODY_BYTES, ..SimpleRequest::default() };
    let mut responses = client.streaming_from_server(Request::new(request)).await?.into_inner();
    while messages.can_continue() {
        if responses.message().await?.is_none() {
            return Err(Status::data_loss("the server ended the stream early"));
        }
        messages.count();
    }
    Ok(())
}

/// Requests of a client stream, and counters of a server stream.
struct Messages {
    ends: Arc<AtomicBool>,
    moved_bytes: Arc<AtomicU64>,
}

impl Messages {
    fn can_continue(&self) -> bool {
        !self.ends.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.moved_bytes.fetch_add(u64::from(BODY_BYTES.unsigned_abs()), Ordering::Relaxed);
    }
}

impl Stream for Messages {
    type Item = SimpleRequest;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<SimpleRequest>> {
        if !self.can_continue() {
            return Poll::Ready(None);
        }
        self.count();
        let payload = Payload { r#type: 0, body: zeros(BODY_BYTES.unsigned_abs() as usize) };
        Poll::Ready(Some(SimpleRequest { payload: Some(payload), ..SimpleRequest::default() }))
    }
}
