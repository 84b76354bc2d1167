//! The load generator: a closed loop of unary calls.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use hdrhistogram::Histogram;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::{Value, json};
use tonic::transport::{Channel, Endpoint};

use crate::benchmark::benchmark_service_client::BenchmarkServiceClient;
use crate::messages::{SimpleRequest, payload};
use crate::serve::MESSAGE_SIZE_MAX;

#[derive(Args)]
pub struct Load {
    /// host:port
    target: String,
    /// Which kind of call.
    #[arg(long, value_enum, default_value = "unary")]
    call: Call,
    /// Payload bytes of a message, each way.
    #[arg(long, default_value_t = 0)]
    size: usize,
    /// Calls in flight over all connections.
    #[arg(short = 'c', default_value_t = 1)]
    in_flight: u32,
    #[arg(long, default_value_t = 1)]
    connections: u32,
    /// How long to measure: 5s, 500ms.
    #[arg(short = 'z', value_parser = duration, conflicts_with = "total")]
    duration: Option<Duration>,
    /// How many calls to measure.
    #[arg(short = 'n')]
    total: Option<u64>,
    /// Driven before, not counted.
    #[arg(long, value_parser = duration, default_value = "1s")]
    warmup: Duration,
    #[arg(short = 'O', value_enum, default_value = "text")]
    format: Format,
    /// A file instead of standard output.
    #[arg(short = 'o')]
    output: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Call {
    Unary,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// When the callers stop.
#[derive(Clone)]
enum End {
    At(Instant),
    /// How many calls are still to be started, over all callers.
    After(Arc<AtomicU64>),
}

impl End {
    fn may_start(&self) -> bool {
        match self {
            Self::At(time) => Instant::now() < *time,
            Self::After(left) => {
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
            }
        }
    }
}

/// What the callers found. They share it under a lock: on the one core that a measurement gives to the client, nobody
/// else ever holds it.
struct Record {
    latencies: Histogram<u64>,
    errors: BTreeMap<String, u64>,
}

impl Record {
    fn new() -> Self {
        let latencies =
            Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are constants");
        Self { latencies, errors: BTreeMap::new() }
    }
}

impl Load {
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let clients = self.connect().await?;
        if !self.warmup.is_zero() {
            self.drive(&clients, &End::At(Instant::now() + self.warmup)).await?;
        }
        let end = match self.total {
            Some(total) => End::After(Arc::new(AtomicU64::new(total))),
            None => End::At(Instant::now() + self.duration.unwrap_or(Duration::from_secs(5))),
        };
        let cpu_before = cpu_ns()?;
        let start = Instant::now();
        let record = self.drive(&clients, &end).await?;
        let took = start.elapsed();
        let cpu = cpu_ns()?;
        let result = self.result(&record, took, [cpu[0] - cpu_before[0], cpu[1] - cpu_before[1]]);
        self.print(&result)?;
        match record.latencies.len() {
            0 => Err("every call failed".into()),
            _ => Ok(()),
        }
    }

    async fn connect(&self) -> Result<Vec<BenchmarkServiceClient<Channel>>, Box<dyn Error>> {
        let mut clients = Vec::new();
        for _ in 0..self.connections {
            let endpoint = Endpoint::from_shared(format!("http://{}", self.target))?.tcp_nodelay(true);
            let client = BenchmarkServiceClient::new(endpoint.connect().await?);
            clients.push(client.max_decoding_message_size(MESSAGE_SIZE_MAX));
        }
        Ok(clients)
    }

    async fn drive(
        &self,
        clients: &[BenchmarkServiceClient<Channel>],
        end: &End,
    ) -> Result<Record, Box<dyn Error>> {
        let record = Arc::new(Mutex::new(Record::new()));
        let request = SimpleRequest { response_size: i32::try_from(self.size)?, payload: payload(self.size) };
        let callers: Vec<_> = (0..self.in_flight as usize)
            .map(|caller| {
                let client = clients[caller % clients.len()].clone();
                let Call::Unary = self.call;
                tokio::spawn(call_unary(client, request.clone(), end.clone(), Arc::clone(&record)))
            })
            .collect();
        for caller in callers {
            caller.await?;
        }
        Ok(Arc::into_inner(record)
            .and_then(|record| record.into_inner().ok())
            .expect("every caller has ended"))
    }

    /// The keys that measurements compare, as in the schema `thalweg.load/1`.
    fn result(&self, record: &Record, took: Duration, cpu_ns: [f64; 2]) -> Value {
        let calls = record.latencies.len();
        let percentile = |percentile| record.latencies.value_at_percentile(percentile);
        let latency = (calls > 0).then(|| {
            json!({
                "min": record.latencies.min(), "mean": record.latencies.mean(),
                "p50": percentile(50.0), "p90": percentile(90.0), "p99": percentile(99.0),
                "p99_9": percentile(99.9), "p99_99": percentile(99.99), "max": record.latencies.max(),
            })
        });
        let per_call = |ns: f64| (calls > 0).then(|| ns / calls as f64);
        json!({
            "schema": "thalweg.load/1",
            "settings": {
                "target": self.target, "call": "unary", "size_bytes": self.size, "in_flight": self.in_flight,
                "connections": self.connections, "warmup_ns": self.warmup.as_nanos() as u64,
                "duration_ns": self.duration.map(|duration| duration.as_nanos() as u64), "total": self.total,
            },
            "duration_ns": took.as_nanos() as u64,
            "closed_loop": true,
            "rate_per_s": calls as f64 / took.as_secs_f64(),
            "calls": calls,
            "messages": calls,
            "errors": record.errors,
            "bytes_sent": calls * self.size as u64,
            "bytes_received": calls * self.size as u64,
            "latency_ns": latency,
            "client_cpu": { "user_ns": cpu_ns[0], "system_ns": cpu_ns[1] },
            "client_cpu_per_call": { "user_ns": per_call(cpu_ns[0]), "system_ns": per_call(cpu_ns[1]) },
            "connections": { "asked": self.connections, "established": null },
        })
    }

    fn print(&self, result: &Value) -> Result<(), Box<dyn Error>> {
        let text = match self.format {
            Format::Json => format!("{result:#}\n"),
            Format::Text => format!(
                "{:.0} calls/s, p50 {} ns, p99 {} ns, errors {}\n",
                result["rate_per_s"].as_f64().unwrap_or_default(),
                result["latency_ns"]["p50"],
                result["latency_ns"]["p99"],
                result["errors"]
            ),
        };
        match &self.output {
            Some(path) => fs::write(path, text)?,
            None => print!("{text}"),
        }
        Ok(())
    }
}

async fn call_unary(
    mut client: BenchmarkServiceClient<Channel>,
    request: SimpleRequest,
    end: End,
    record: Arc<Mutex<Record>>,
) {
    while end.may_start() {
        let start = Instant::now();
        let answer = client.unary_call(request.clone()).await;
        let latency_ns = start.elapsed().as_nanos() as u64;
        let mut record = record.lock().expect("no caller panics while it holds the lock");
        match answer {
            Ok(_) => record.latencies.saturating_record(latency_ns),
            Err(status) => *record.errors.entry(format!("{:?}", status.code())).or_default() += 1,
        }
    }
}

/// User and system time of this process so far.
fn cpu_ns() -> Result<[f64; 2], Box<dyn Error>> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok([usage.user_time().num_nanoseconds() as f64, usage.system_time().num_nanoseconds() as f64])
}

/// `2`, `2s`, `1.5s`, `200ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, seconds) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("`{text}` is not a duration such as 5s or 200ms"))?;
    Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())
}
