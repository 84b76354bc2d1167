//! Opens connections, makes one call on each, and keeps them idle until stdin ends. Once all are open, prints one line
//! of JSON: their number, and this process's memory without them.
//!
//! ```text
//! cargo run --release -p thalweg-load --example idle_lanes -- 127.0.0.1:50051 10000
//! ```

use std::error::Error;
use std::fs;
use std::io::Read;

use clap::Parser;
use serde_json::json;
use thalweg::{Channel, Request};
use thalweg_load::services::proto::SimpleRequest;
use thalweg_load::services::proto::benchmark_service_client::BenchmarkServiceClient;

/// Connections per channel, of which a channel has at most 1024.
const LANES_PER_CHANNEL: usize = 1000;

/// Holds idle connections to a server of `grpc.testing.BenchmarkService`
#[derive(Debug, Parser)]
struct Args {
    /// A gRPC target: `127.0.0.1:50051`, `unix:/path`
    target: String,
    /// Number of connections
    lanes: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let Args { target, lanes } = Args::parse();
    // Excludes the process's one-time allocations from the memory per connection.
    let mut channels = vec![open(&target, 1).await?];
    let before = resident_set_size()?;
    while channels.len() * LANES_PER_CHANNEL < lanes + LANES_PER_CHANNEL {
        let missing = lanes - (channels.len() - 1) * LANES_PER_CHANNEL;
        channels.push(open(&target, missing.min(LANES_PER_CHANNEL)).await?);
    }
    println!("{}", json!({ "lanes": lanes, "rss_bytes_before": before }));
    let end_of_input = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(end_of_input).await??;
    Ok(())
}

/// Returns a channel that has made a call on each lane: calls that do not overlap use the lanes in turn.
async fn open(target: &str, lanes: usize) -> Result<Channel, Box<dyn Error>> {
    let channel = Channel::builder(target).lanes(lanes).connect().await?;
    let client = BenchmarkServiceClient::new(channel.clone());
    for _ in 0..lanes {
        client.unary_call(Request::new(SimpleRequest::default())).await?;
    }
    Ok(channel)
}

/// Returns the resident memory of this process in bytes.
fn resident_set_size() -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS in /proc")?;
    Ok(1024 * kibibytes.parse::<u64>()?)
}
