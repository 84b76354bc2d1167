//! What `thalweg load` tells while it runs, as other people's programs understand it: an OpenTelemetry Collector by
//! OTLP, and Prometheus by its own parsers and the linter of `promtool`.

mod expected;
mod otlp;
mod prometheus;

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::expected::{Expected, METHOD, METRICS};
use crate::job::{Failure, Job, Log};
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::{tools, workspace};

/// Every other call fails.
const REQUESTS: &str = r#"{"response_size": 10}{"response_status": {"code": 5}}"#;
/// All calls begin in the first second: what is told after that is the result.
const LOAD: &str = "-c 4 --workers 4/1s,0/60s -z 6s --max-errors 60% --otlp-interval 500ms -O json";
/// Within what time the calls of a load have ended.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(300);
/// What Prometheus 3 asks with.
const ACCEPT: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
     application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,\
     text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
const ACCEPT_TEXT: &str = "text/plain;version=0.0.4";

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let metrics = tools::metrics(log)?;
    prometheus_is_strict(&metrics, log)?;
    let thalweg = rust::command(log)?;
    let folder = workspace::output().join("metrics");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let (port, otlp, exposed) = (free_port()?, free_port()?, free_port()?);
    let serve = Job::new(&thalweg).words(&format!("serve --threads 1 --listen 127.0.0.1:{port}"));
    let server = Server::start(&serve, port, log)?;
    let received = folder.join("received.jsonl");
    let settings = folder.join("collector.yaml");
    fs::write(&settings, otlp::settings(otlp, &received))?;
    let collector = Server::start(&Job::new(&metrics).arg("collector").arg(&settings), otlp, log)?;
    let load = Job::new(&thalweg).arg("load").arg(format!("127.0.0.1:{port}")).words("--call").arg(METHOD);
    let load = load.arg("-d").arg(REQUESTS).words(LOAD).arg("--otlp").arg(format!("http://127.0.0.1:{otlp}"));
    let load = load.arg("--prometheus").arg(format!("127.0.0.1:{exposed}")).minutes(2);
    let url = format!("http://127.0.0.1:{exposed}/metrics");
    let (run, scraped) = thread::scope(|scope| {
        let running = scope.spawn(|| load.quiet_text(log));
        let scraped = scraped(&metrics, &url, log);
        (running.join().expect("it does not panic"), scraped)
    });
    let (run, scraped) = (parsed(&run?)?, scraped?);
    // It has written all that it was told when it has ended.
    let ended = [collector.stop()?, server.stop()?];
    if let Some(status) = ended.iter().find(|status| !status.success()) {
        return Err(Failure::failed(format!("a server did not end well: {status}")));
    }
    let expected = Expected::of(&run, &format!("127.0.0.1:{port}"))?;
    let pushes = otlp::check(&fs::read_to_string(&received)?, &expected)?;
    for exposition in &scraped {
        prometheus::check(exposition, &expected)?;
    }
    let (count, calls) = (METRICS.len(), expected.calls());
    Ok(format!(
        "{count} metrics of {calls} calls: {pushes} pushes to a collector, and both formats of Prometheus"
    ))
}

/// The exposition in both formats, once all calls have ended.
fn scraped(metrics: &Path, url: &str, log: &Log) -> Result<[Value; 2], Failure> {
    let began = Instant::now();
    let mut before = None;
    loop {
        thread::sleep(LOOK);
        // The load may not listen yet.
        let last = scrape(metrics, url, ACCEPT_TEXT, log);
        let ended = last.as_ref().ok().and_then(prometheus::ended);
        // Nothing has ended for the time of many calls.
        if ended.is_some() && ended == before {
            return Ok([last?, scrape(metrics, url, ACCEPT, log)?]);
        }
        if began.elapsed() > PATIENCE {
            return Err(last.err().unwrap_or_else(|| Failure::failed("calls do not end")));
        }
        before = ended;
    }
}

/// What Prometheus understands. What its parser or linter has against it is in the log.
fn scrape(metrics: &Path, url: &str, accept: &str, log: &Log) -> Result<Value, Failure> {
    parsed(&Job::new(metrics).words("scrape").arg(url).arg(accept).seconds(20).quiet_text(log)?)
}

/// What is wrong on purpose is found.
fn prometheus_is_strict(metrics: &Path, log: &Log) -> Result<(), Failure> {
    for (text, says) in [
        ("# TYPE calls counter\ncalls 1\n", "counter metrics should have \"_total\" suffix"),
        (
            "# HELP calls_total Calls\n# TYPE calls_total counter\ncalls_total{a=\"b} 1\n",
            "expected label value",
        ),
        ("calls_total 1\ncalls_total 2\n", "is there twice"),
    ] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let url = format!("http://{}/metrics", listener.local_addr()?);
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{text}",
            text.len()
        );
        let found = thread::scope(|scope| {
            scope.spawn(|| answered(&listener, &answer));
            Job::new(metrics).words("scrape").arg(&url).arg(ACCEPT_TEXT).seconds(20).output(log)
        })?;
        let said = String::from_utf8_lossy(&found.stderr);
        if found.status.code() != Some(1) || !said.contains(says) {
            return Err(Failure::failed(format!("{text:?} was not found to be wrong: {said}")));
        }
    }
    Ok(())
}

/// One request gets this answer, once it is there.
fn answered(listener: &TcpListener, answer: &str) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    let request = BufReader::new(stream.try_clone()?).lines();
    request.take_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty())).for_each(drop);
    stream.write_all(answer.as_bytes())
}

fn parsed(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::failed(format!("{error} in {text}")))
}
