//! Rates and CPU times of the clients: each makes the same small call again and again, or sends messages on one stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic_health::pb::health_client::HealthClient;

use crate::outcome::Outcome;
use crate::streams::{self, Passing};
use crate::{console, containerd, etcd, flight, forest, pubsub, qdrant, served, telemetry, workload, xds};

/// Calls in flight.
const CALLERS: usize = 16;

/// Drives the client `name` for some seconds after a warm-up of a quarter of that. Prints calls per second, and the
/// CPU time of a call in µs, of this process and of the process `server`.
pub async fn measure(name: &str, address: &str, seconds: &str, server: &str) -> Outcome {
    let window = Window { time: Duration::from_secs_f64(seconds.parse()?), server };
    match name {
        "console" => {
            let client = console::client(address).await?;
            window.print(move || console::resume(client.clone())).await
        }
        "containerd" => {
            let client = containerd_client::connect(address).await?;
            window.print(move || containerd::version(client.clone())).await
        }
        "etcd" => {
            let client = etcd::client(address).await?;
            window.print(move || etcd::get(client.clone())).await
        }
        "flight" => {
            let channel = flight::channel(address).await?;
            window.print(move || flight::exchange(channel.clone())).await
        }
        "health" => {
            let client = HealthClient::new(flight::channel(address).await?);
            window.print(move || served::check(client.clone())).await
        }
        "middleware" => {
            let client = forest::client(address).await?;
            window.print(move || forest::find(client.clone())).await
        }
        "pubsub" => {
            let topic = pubsub::client(address).await?.create_topic("rates", None, None).await?;
            let publisher = topic.new_publisher(None);
            window.print(move || pubsub::publish(publisher.clone())).await
        }
        "qdrant" => {
            let client = Arc::new(qdrant::client(address)?);
            window.print(move || qdrant::check(client.clone())).await
        }
        "spiffe" => {
            let client = workload::client(address).await?;
            window.print(move || workload::fetch(client.clone())).await
        }
        "telemetry" => {
            let tracer = telemetry::tracer(address)?;
            window.print(move || telemetry::export(tracer.clone())).await
        }
        "xds" => {
            let client = xds::client(address)?;
            window.print(move || forest::find(client.clone())).await
        }
        stream => window.print_stream(stream, address).await,
    }
}

struct Window<'a> {
    time: Duration,
    server: &'a str,
}

impl Window<'_> {
    async fn print<F>(&self, call: impl Fn() -> F + Clone + Send + 'static) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let (ended, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let (call, ended, is_over) = (call.clone(), ended.clone(), is_over.clone());
            callers.spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    call().await?;
                    ended.fetch_add(1, Ordering::Relaxed);
                }
                Outcome::Ok(())
            });
        }
        let figures = tokio::select! {
            window = self.window(&ended) => window?,
            Some(failed) = callers.join_next() => return failed?,
        };
        // The runtime ends with this process, and calls do not survive it.
        is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = callers.join_next().await {
            ended??;
        }
        self.show(figures);
        Ok(())
    }

    /// Counts the messages of one stream.
    async fn print_stream(&self, name: &str, address: &str) -> Outcome {
        let passing = Passing { passed: Arc::default(), is_over: Arc::default() };
        let (name, address) = (name.to_owned(), address.to_owned());
        let (passed, is_over) = (passing.passed.clone(), passing.is_over.clone());
        let mut stream = tokio::spawn(async move { streams::run(&name, &address, passing).await });
        let figures = tokio::select! {
            window = self.window(&passed) => window?,
            ended = &mut stream => return ended?.and(Err("the stream ended early".into())),
        };
        is_over.store(true, Ordering::Relaxed);
        stream.await??;
        self.show(figures);
        Ok(())
    }

    fn show(&self, (calls, cpu, server_cpu): (f64, f64, f64)) {
        let each_us = |cpu: f64| cpu * 1e6 / calls;
        println!("{:.1} {:.4} {:.4}", calls / self.time.as_secs_f64(), each_us(cpu), each_us(server_cpu));
    }

    /// Calls that end in the window, and the CPU times of both processes, in seconds.
    async fn window(&self, ended: &AtomicU64) -> Outcome<(f64, f64, f64)> {
        sleep(self.time / 4).await;
        let now = || Outcome::Ok((ended.load(Ordering::Relaxed), cpu("self")?, cpu(self.server)?));
        let begin = now()?;
        sleep(self.time).await;
        let end = now()?;
        Ok(((end.0 - begin.0) as f64, end.1 - begin.1, end.2 - begin.2))
    }
}

/// CPU time of a process in seconds, to 10 ms.
fn cpu(process: &str) -> Outcome<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The fields behind the program's name, which ends with the last bracket: user and system time are the 14th and
    // 15th of all, in hundredths.
    let (_, fields) = stat.rsplit_once(')').ok_or("no program name")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
}
