//! The metrics of a running `thalweg load` in third-party programs: an OpenTelemetry Collector (OTLP), and Prometheus
//! with its own parsers and `promtool`'s linter.

mod otlp;
mod prometheus;
mod series;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::series::{Expected, METHOD, METRICS};
use super::rust;
use crate::failure::Result;
use crate::job::Job;
use crate::server::{Server, free_port};
use crate::{files, tools, workspace};

/// Every other call fails.
const REQUESTS: &str = r#"{"response_size": 10}{"response_status": {"code": 5}}"#;
/// All calls start in the first second: later metrics are final.
const LOAD: &str = "-c 4 --workers 4/1s,0/60s -z 6s --max-errors 60% --otlp-interval 500ms -O json";
/// Time limit for the calls of a load to end.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(300);
/// The Accept header of Prometheus 3.
const ACCEPT: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
     application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,\
     text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
const ACCEPT_TEXT: &str = "text/plain;version=0.0.4";

pub(super) fn check() -> Result<String> {
    let metrics = tools::go_program("metrics", ".", "metrics")?;
    let folder = files::create_empty(workspace::output().join("metrics"))?;
    prometheus_is_strict(&metrics, &folder)?;
    let server = rust::serve("--threads 1")?;
    let (received, settings) = (folder.join("received.jsonl"), folder.join("collector.yaml"));
    let otlp_port = free_port()?;
    fs::write(&settings, otlp::settings(otlp_port, &received))?;
    let collector = Server::start_at(&Job::new(&metrics).arg("collector").arg(&settings), otlp_port)?;
    let exposed = format!("127.0.0.1:{}", free_port()?);
    let load = Job::new(rust::command()?).arg("load").arg(server.address()).words("--call").arg(METHOD);
    let load = load.arg("-d").arg(REQUESTS).words(LOAD).arg("--otlp");
    let load =
        load.arg(format!("http://{}", collector.address())).arg("--prometheus").arg(&exposed).minutes(2);
    let (run, scraped) = thread::scope(|scope| {
        let running = scope.spawn(|| load.json());
        let scraped = scraped(&metrics, &format!("http://{exposed}/metrics"));
        (running.join().expect("the thread does not panic"), scraped)
    });
    let (run, scraped) = (run?, scraped?);
    let target = server.address();
    // The collector has written all data once it has exited.
    collector.stop_gracefully()?;
    server.stop_gracefully()?;
    let expected = Expected::of(&run, &target)?;
    let pushes = otlp::check(&fs::read_to_string(&received)?, &expected)?;
    for exposition in &scraped {
        prometheus::check(exposition, &expected)?;
    }
    let (count, calls) = (METRICS.len(), expected.calls);
    Ok(format!(
        "{count} metrics of {calls} calls: {pushes} pushes to a collector, and both formats of Prometheus"
    ))
}

/// Returns the exposition in both formats once all calls have ended.
fn scraped(metrics: &Path, url: &str) -> Result<[Value; 2]> {
    let began = Instant::now();
    let mut before = None;
    loop {
        thread::sleep(LOOK);
        // The load may not listen yet.
        let last = scrape(metrics, url, ACCEPT_TEXT);
        let ended = last.as_ref().ok().and_then(prometheus::ended);
        // No call has ended for a long time.
        if ended.is_some() && ended == before {
            return Ok([last?, scrape(metrics, url, ACCEPT)?]);
        }
        if began.elapsed() > PATIENCE {
            return Err(last.err().unwrap_or_else(|| failed!("the calls did not finish")));
        }
        before = ended;
    }
}

/// The exposition as parsed by Prometheus. Complaints of its parser and linter are logged.
fn scrape(metrics: &Path, url: &str, accept: &str) -> Result<Value> {
    Job::new(metrics).words("scrape").arg(url).arg(accept).seconds(20).json()
}

/// Checks that deliberate errors are found.
fn prometheus_is_strict(metrics: &Path, folder: &Path) -> Result<()> {
    let wrong = folder.join("wrong.txt");
    for (text, says) in [
        ("# TYPE calls counter\ncalls 1\n", "counter metrics should have \"_total\" suffix"),
        (
            "# HELP calls_total Calls\n# TYPE calls_total counter\ncalls_total{a=\"b} 1\n",
            "expected label value",
        ),
        ("calls_total 1\ncalls_total 2\n", "is there twice"),
    ] {
        fs::write(&wrong, text)?;
        let scrape = Job::new(metrics).words("scrape").arg(format!("file://{}", wrong.display()));
        let found = scrape.arg(ACCEPT_TEXT).seconds(20).output()?;
        let is_found = found.status.code() == Some(1) && found.err.contains(says);
        ensure!(is_found, "{text:?} was accepted: {}", found.err);
    }
    Ok(())
}
