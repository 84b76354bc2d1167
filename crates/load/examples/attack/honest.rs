//! An honest client, which measures the effect of an attack.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use thalweg::tls::{Certificate, ClientTlsConfig};
use thalweg::{Channel, Request};
use thalweg_load::services::proto::SimpleRequest;
use thalweg_load::services::proto::benchmark_service_client::BenchmarkServiceClient;
use thalweg_measure::distribution::LATENCY_NS_MAX;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

/// Interval between calls, whatever their outcome, so that a stalled server keeps many waiting.
const PERIOD: Duration = Duration::from_millis(5);
/// Deadline of a call.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes calls for `duration`. Returns latencies in nanoseconds and the number of failed calls.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(
    target: &str,
    duration: Duration,
    authority: Option<&Path>,
) -> Result<Value, Box<dyn Error>> {
    let mut builder = Channel::builder(target).lanes(1);
    if let Some(authority) = authority {
        let authority = Certificate::from_file(authority);
        builder = builder.tls(ClientTlsConfig::new().ca_certificate(authority).domain_name("localhost"));
    }
    let client = BenchmarkServiceClient::new(builder.connect().await?);
    client.unary_call(Request::new(SimpleRequest::default())).await?;
    println!("calling");
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut calls = JoinSet::new();
    let until = Instant::now() + duration;
    while Instant::now() < until {
        ticks.tick().await;
        calls.spawn(call(client.clone()));
    }
    let mut latency_ns = Histogram::<u64>::new_with_max(LATENCY_NS_MAX, 3)?;
    let mut failed = 0;
    for outcome in calls.join_all().await {
        match outcome {
            Some(latency) => latency_ns.saturating_record(latency.as_nanos() as u64),
            None => failed += 1,
        }
    }
    Ok(json!({
        "calls": latency_ns.len(),
        "failed": failed,
        "p50_ns": latency_ns.value_at_quantile(0.50),
        "p99_ns": latency_ns.value_at_quantile(0.99),
        "max_ns": latency_ns.max(),
    }))
}

async fn call(client: BenchmarkServiceClient) -> Option<Duration> {
    let mut request = Request::new(SimpleRequest::default());
    request.set_timeout(PATIENCE);
    let start = Instant::now();
    client.unary_call(request).await.ok().map(|_| start.elapsed())
}
