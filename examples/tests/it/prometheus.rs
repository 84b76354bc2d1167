//! Checks the metrics that Prometheus scrapes, over HTTP.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[path = "../../prometheus.rs"]
#[allow(dead_code, reason = "its main is for who runs it")]
mod program;

/// Sends one request and returns status line, headers and body of the response.
async fn http_get(address: SocketAddr, method: &str, path: &str) -> (String, String, String) {
    let mut socket = TcpStream::connect(address).await.expect("it listens");
    let request = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.expect("it reads");
    let mut response = String::new();
    socket.read_to_string(&mut response).await.expect("it answers with text");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    let (status, head) = head.split_once("\r\n").expect("a status line");
    (status.to_owned(), head.to_ascii_lowercase(), body.to_owned())
}

/// Parses samples by name, with sorted labels and without the labels of the scope.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut samples = BTreeMap::new();
    for line in lines {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = name.trim_end_matches('}').split_once('{').unwrap_or((name, ""));
        let mut labels: Vec<&str> =
            labels.split(',').filter(|label| !label.starts_with("otel_scope")).collect();
        labels.sort_unstable();
        samples.insert(format!("{name}{{{}}}", labels.join(",")), value.parse().expect("a number"));
    }
    samples
}

#[tokio::test]
async fn metrics_are_scraped() {
    let address = "127.0.0.1:0".parse().expect("an address");
    let running = program::start(address, "127.0.0.1:0").await.expect("it starts");
    for name in ["Ada", "Grace", ""] {
        let _ = running.greeter.say_hello(program::helloworld::HelloRequest { name: name.to_owned() }).await;
    }
    let (status, head, body) = http_get(running.metrics, "GET", "/metrics").await;
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    let samples = samples(&body);
    let check =
        |name: &str, expected: f64| assert_eq!(samples.get(name), Some(&expected), "{name} in {samples:#?}");
    let method = "grpc_method=\"helloworld.Greeter/SayHello\"";
    check(&format!("grpc_server_call_started_total{{{method}}}"), 3.0);
    check(&format!("grpc_server_call_duration_seconds_count{{{method},grpc_status=\"OK\"}}"), 2.0);
    let refused = format!("{method},grpc_status=\"INVALID_ARGUMENT\"");
    check(&format!("grpc_server_call_duration_seconds_count{{{refused}}}"), 1.0);
    let counts_of = |name: &str| -> f64 {
        samples.iter().filter(|(sample, _)| sample.starts_with(name)).map(|(_, value)| value).sum()
    };
    assert!((counts_of("grpc_client_call_duration_seconds_count") - 3.0).abs() < f64::EPSILON, "{body}");
    assert!((counts_of("grpc_subchannel_open_connections") - 1.0).abs() < f64::EPSILON, "{body}");
    assert!(body.contains("# TYPE grpc_server_call_duration_seconds histogram"), "{body}");

    assert_eq!(http_get(running.metrics, "GET", "/").await.0, "HTTP/1.1 404 Not Found");
    assert_eq!(http_get(running.metrics, "POST", "/metrics").await.0, "HTTP/1.1 405 Method Not Allowed");
}
