//! Tests export of metrics by Prometheus and OTLP.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use thalweg::{ListenAddress, Request, Response, Server, Status};
use tokio::runtime::{Builder, Runtime};

use crate::otlp::opentelemetry::proto::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use crate::otlp::opentelemetry::proto::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use crate::otlp::opentelemetry::proto::common::v1::{KeyValue, any_value};
use crate::otlp::opentelemetry::proto::metrics::v1::{AggregationTemporality, metric, number_data_point};
use crate::support::{Running, outcome, thalweg};

const UNARY: &str = "grpc.testing.TestService/UnaryCall";
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends a request to the metrics server. Returns the response's headers and body.
fn http(address: &str, method: &str, path: &str, accept: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\naccept: {accept}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Returns samples by name and labels.
fn samples(text: &str) -> BTreeMap<&str, f64> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect()
}

/// All calls start in the first second, which leaves time to scrape before the run ends.
#[test]
fn last_prometheus_scrape_equals_result() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let data = r#"{"response_size": 10}{"response_status": {"code": 5}}"#;
    let words = [
        "load",
        &addresses[0],
        "--call",
        UNARY,
        "-d",
        data,
        "-c",
        "4",
        "--workers",
        "4/1s,0/30s",
        "-z",
        "4s",
    ];
    let words = [&words[..], &["--max-errors", "60%", "--prometheus", "127.0.0.1:0", "-O", "json"]].concat();
    let mut client = thalweg(&words).spawn().unwrap();
    let mut stderr = BufReader::new(client.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("note: metrics at http://").expect(&line);
    let address = address.strip_suffix("/metrics").unwrap();

    let of = |status: &str| {
        let (method, target) = (UNARY, &addresses[0]);
        format!("{{grpc_target=\"{target}\",grpc_method=\"{method}\",grpc_status=\"{status}\"}}")
    };
    let ok = format!("thalweg_load_calls_total{}", of("OK"));
    let not_found = format!("thalweg_load_calls_total{}", of("NOT_FOUND"));
    let began = Instant::now();
    let mut before = 0;
    let text = loop {
        let (head, text) = http(address, "GET", "/metrics", "*/*");
        assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
        let samples = samples(&text);
        let count = |name: &String| samples.get(name.as_str()).copied().unwrap_or_default();
        let ended = (count(&ok) + count(&not_found)) as u64;
        // Stops when no call has ended for a while.
        if ended > 0 && ended == before {
            break text;
        }
        assert!(began.elapsed() < PATIENCE, "{text}");
        before = ended;
        std::thread::sleep(Duration::from_millis(300));
    };
    let (head, open) = http(address, "GET", "/metrics", "application/openmetrics-text;version=1.0.0");
    assert!(head.contains("content-type: application/openmetrics-text"), "{head}");
    assert!(open.contains("# TYPE thalweg_load_calls counter\n") && open.ends_with("# EOF\n"), "{open}");
    assert!(http(address, "GET", "/", "*/*").0.starts_with("HTTP/1.1 404 "));
    assert!(http(address, "POST", "/metrics", "*/*").0.starts_with("HTTP/1.1 405 "));

    let (code, stdout, _) = outcome(client.wait_with_output().unwrap());
    assert_eq!(code, Some(0));
    let run: Value = serde_json::from_str(&stdout).unwrap();
    let samples = samples(&text);
    let check = |name: &str, labels: &str, expected: &Value| {
        let name = format!("{name}{{grpc_target=\"{}\"{labels}}}", addresses[0]);
        let sample = samples.get(name.as_str()).unwrap_or_else(|| panic!("no {name} in {text}"));
        assert_eq!(Some(*sample), expected.as_f64(), "{name}");
    };
    let method = format!(",grpc_method=\"{UNARY}\"");
    check("thalweg_load_calls_total", &format!("{method},grpc_status=\"OK\""), &run["ok"]);
    check(
        "thalweg_load_calls_total",
        &format!("{method},grpc_status=\"NOT_FOUND\""),
        &run["errors"]["NOT_FOUND"],
    );
    check("thalweg_load_dropped_total", "", &run["dropped"]);
    check("thalweg_load_late_total", "", &run["late"]);
    check("thalweg_load_in_flight", "", &0.into());
    check("thalweg_load_connections", "", &1.into());
    check("thalweg_load_messages_total", ",network_io_direction=\"transmit\"", &run["messages_sent"]);
    check("thalweg_load_io_bytes_total", ",network_io_direction=\"receive\"", &run["bytes_received"]);
    let duration = format!("{method},grpc_status=\"OK\"");
    check("grpc_client_call_duration_seconds_count", &duration, &run["latency"]["count"]);
    check("grpc_client_call_duration_seconds_bucket", &format!("{duration},le=\"+Inf\""), &run["ok"]);
    let went = |how: &str| format!(",thalweg_load_outcome=\"{how}\"");
    check("thalweg_load_latency_seconds_count", &format!("{method}{}", went("ok")), &run["latency"]["count"]);
    check("thalweg_load_latency_seconds_count", &went("failed"), &run["failed_latency"]["count"]);
    // Buckets are cumulative, and half of the calls take at most the median.
    let name =
        format!("grpc_client_call_duration_seconds_bucket{{grpc_target=\"{}\"{duration},", addresses[0]);
    let buckets = text.lines().filter_map(|line| line.strip_prefix(&name)).map(|line| {
        let (bound, count) = line.split_once("\"} ").unwrap();
        (bound.strip_prefix("le=\"").unwrap().parse::<f64>().unwrap(), count.parse::<f64>().unwrap())
    });
    let buckets: Vec<_> = buckets.collect();
    assert!(buckets.len() == 42 && buckets.is_sorted(), "{buckets:?}");
    let median_s = run["latency"]["p50"].as_f64().unwrap() / 1e9;
    let (_, upto) = buckets.iter().find(|(bound, _)| *bound >= median_s).unwrap();
    assert!(*upto >= run["ok"].as_f64().unwrap() / 2.0, "{buckets:?}");
}

/// Collector that keeps requests with the value of `x-key`.
#[derive(Clone, Default)]
struct Collector {
    kept: Arc<Mutex<Vec<(String, ExportMetricsServiceRequest)>>>,
    /// Delay before the first request is kept, even if the client gives up.
    first_takes: Duration,
    has_first: Arc<AtomicBool>,
}

impl MetricsService for Collector {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let key = request.metadata().get("x-key").map(|key| key.to_str().unwrap().to_owned());
        let is_first = !self.has_first.swap(true, Ordering::Relaxed);
        let (kept, takes) = (self.kept.clone(), if is_first { self.first_takes } else { Duration::ZERO });
        let keep = async move {
            tokio::time::sleep(takes).await;
            kept.lock().unwrap().push((key.unwrap_or_default(), request.into_inner()));
        };
        tokio::spawn(keep).await.unwrap();
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

impl Collector {
    /// Serves until the runtime is dropped. Returns the URL.
    fn serve(&self) -> (Runtime, String) {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(async {
            let server = Server::builder().add_service(MetricsServiceServer::new(self.clone()));
            server.bind(&["127.0.0.1:0".parse::<ListenAddress>().unwrap()]).await.unwrap()
        });
        let target = format!("http://{}", server.local_addresses()[0]);
        runtime.spawn(server.serve());
        (runtime, target)
    }
}

fn attributes(attributes: &[KeyValue]) -> String {
    let text = |attribute: &KeyValue| match &attribute.value.as_ref().unwrap().value {
        Some(any_value::Value::StringValue(text)) => format!("{}={text}", attribute.key),
        other => panic!("{other:?}"),
    };
    attributes
        .iter()
        .filter(|attribute| attribute.key != "grpc.target")
        .map(text)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns values by name and attributes; for histograms their counts.
fn values(request: &ExportMetricsServiceRequest) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    for metric in &request.resource_metrics[0].scope_metrics[0].metrics {
        match metric.data.as_ref().unwrap() {
            metric::Data::Sum(sum) => {
                assert_eq!(sum.aggregation_temporality(), AggregationTemporality::Cumulative);
                for point in &sum.data_points {
                    let value = match point.value.unwrap() {
                        number_data_point::Value::AsInt(value) => value as f64,
                        number_data_point::Value::AsDouble(value) => value,
                    };
                    values.insert(format!("{} {}", metric.name, attributes(&point.attributes)), value);
                }
            }
            metric::Data::Histogram(histogram) => {
                for point in &histogram.data_points {
                    assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
                    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
                    let name = format!("{} {}", metric.name, attributes(&point.attributes));
                    values.insert(name, point.count as f64);
                }
            }
            other => panic!("{other:?}"),
        }
    }
    values
}

#[test]
fn last_otlp_push_equals_result() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let collector = Collector::default();
    let (_runtime, target) = collector.serve();
    let words = ["load", &addresses[0], "--call", UNARY, "--rps", "200", "-z", "2s", "-O", "json"];
    let push = ["--otlp", &target, "--otlp-interval", "300ms", "--otlp-header", "x-key: secret"];
    let (code, stdout, stderr) = outcome(thalweg(&[&words[..], &push].concat()).output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let run: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(run["connections_established"], 1);
    let pushed = collector.kept.lock().unwrap();
    assert!(pushed.len() >= 3, "{}", pushed.len());
    assert!(pushed.iter().all(|(key, _)| key == "secret"));
    let values: Vec<_> = pushed.iter().map(|(_, request)| values(request)).collect();
    let method = format!("grpc.method={UNARY}");
    let calls = format!("thalweg.load.calls {method} grpc.status=OK");
    assert!(values.iter().map(|values| values[&calls]).is_sorted(), "{values:?}");
    let last = values.last().unwrap();
    let check = |name: &str, expected: &Value| {
        assert_eq!(last.get(name).copied(), expected.as_f64(), "{name} of {last:?}");
    };
    check(&calls, &run["ok"]);
    check(&format!("grpc.client.call.duration {method} grpc.status=OK"), &run["service"]["count"]);
    check(&format!("thalweg.load.latency {method} thalweg.load.outcome=ok"), &run["latency"]["count"]);
    check("thalweg.load.messages network.io.direction=transmit", &run["messages_sent"]);
    check("thalweg.load.io network.io.direction=receive", &run["bytes_received"]);
    check("thalweg.load.in_flight ", &0.into());
    check("thalweg.load.scheduled ", &400.into());
    check("thalweg.load.late ", &run["late"]);
    let (_, request) = pushed.last().unwrap();
    let resource = request.resource_metrics[0].resource.as_ref().unwrap();
    assert!(attributes(&resource.attributes).starts_with("service.name=thalweg-load "));
}

/// The run ends during the first push.
#[test]
fn last_push_arrives_last_at_slow_collector() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let collector = Collector { first_takes: Duration::from_millis(1200), ..Collector::default() };
    let (_runtime, target) = collector.serve();
    let words = ["load", &addresses[0], "--call", UNARY, "--rps", "100", "-z", "1s", "-O", "json"];
    let push = ["--otlp", &target, "--otlp-interval", "400ms"];
    let (code, stdout, stderr) = outcome(thalweg(&[&words[..], &push].concat()).output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let run: Value = serde_json::from_str(&stdout).unwrap();
    let kept = collector.kept.lock().unwrap();
    assert!(kept.len() >= 2, "{}", kept.len());
    let calls = format!("thalweg.load.calls grpc.method={UNARY} grpc.status=OK");
    assert_eq!(values(&kept.last().unwrap().1).get(&calls).copied(), run["ok"].as_f64());
}

/// The first push gets no response.
#[test]
fn unresponsive_collector_still_gets_last_push() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let collector = Collector { first_takes: Duration::from_secs(3600), ..Collector::default() };
    let (_runtime, target) = collector.serve();
    let words = ["load", &addresses[0], "--call", UNARY, "--rps", "100", "-z", "1s"];
    let push = ["--otlp", &target, "--otlp-interval", "400ms"];
    let (code, _, stderr) = outcome(thalweg(&[&words[..], &push].concat()).output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("(DeadlineExceeded: no response)"), "{stderr}");
    assert_eq!(collector.kept.lock().unwrap().len(), 1);
}

#[test]
fn unreachable_collector_is_reported_once() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["load", &addresses[0], "--call", UNARY, "-c", "4", "-z", "1s"];
    // Nothing listens on port 1.
    let push = ["--otlp", "127.0.0.1:1", "--otlp-interval", "100ms"];
    let (code, stdout, stderr) = outcome(thalweg(&[&words[..], &push].concat()).output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("errors        none"), "{stdout}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("note: pushing metrics to 127.0.0.1:1 failed (Unavailable"), "{stderr}");
}

#[test]
fn unusable_export_addresses_are_bad_arguments() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let check = |flags: &[&str], expected: &str| {
        let words = [&["load", &addresses[0], "--call", UNARY, "-z", "1s"], flags].concat();
        let (code, _, stderr) = outcome(thalweg(&words).output().unwrap());
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    check(&["--prometheus", &addresses[0]], "--prometheus: failed to listen on");
    check(&["--otlp", "localhost"], "has no port");
    check(&["--otlp", "localhost:1", "--otlp-interval", "1ms"], "at least 100ms");
    check(&["--otlp-header", "a: b"], "--otlp");
}
