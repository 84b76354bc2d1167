//! Tests load reports: in the trailers of calls, and by the generated client of `xds.service.orca.v3`.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use thalweg::metadata::MetadataMap;
use thalweg::prost::Message;
use thalweg::server::{LateTrailers, Methods, Service, Trailers};
use thalweg::{
    CallOptions, Channel, Code, Method, Raw, Request, Response, ServiceOptions, Status, Stream, Streaming,
};
use thalweg_services::orca::pb::open_rca_service_client::OpenRcaServiceClient;
use thalweg_services::orca::pb::{OrcaLoadReport, OrcaLoadReportRequest};
use thalweg_services::orca::{CallMetrics, ServerMetrics};

use crate::support::{Running, soon};

static ONE: Method = Method::new("/test.Costs/One");
static MANY: Method = Method::new("/test.Costs/Many");

/// Reports the length of requests as a cost, and fails if they are `fail`. `Many` sends three responses.
struct Costs;

impl Service for Costs {
    const NAME: &'static str = "test.Costs";

    fn register(self, methods: &mut Methods<'_>) {
        let (service, options) = (Arc::new(self), ServiceOptions::default());
        methods.unary("One", &service, &options, one);
        methods.server_streaming("Many", &service, &options, many);
    }
}

async fn one(_: Arc<Costs>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
    let metrics = CallMetrics::of(&request);
    metrics.set_request_cost("bytes", request.get_ref().0.len() as f64);
    if request.get_ref().0 == "memory" {
        metrics.set_memory_utilization(0.75);
    }
    if request.get_ref().0 == "fail" {
        return Err(Status::not_found("asked to"));
    }
    let mut response = Response::new(request.into_inner());
    response.extensions_mut().insert(Trailers(own_trailers()));
    Ok(response)
}

async fn many(_: Arc<Costs>, request: Request<Raw>) -> Result<Response<ThreeResponses>, Status> {
    let (metrics, fails) = (CallMetrics::of(&request), request.get_ref().0 == "fail");
    let mut response = Response::new(ThreeResponses { metrics, sent: 0, fails });
    response.extensions_mut().insert(LateTrailers::new(own_trailers));
    Ok(response)
}

fn own_trailers() -> MetadataMap {
    let mut trailers = MetadataMap::new();
    trailers.insert("x-own", "kept".parse().expect("ASCII"));
    trailers
}

struct ThreeResponses {
    metrics: CallMetrics,
    sent: u32,
    fails: bool,
}

impl Stream for ThreeResponses {
    type Item = Result<Raw, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.sent == 3 {
            return Poll::Ready(self.fails.then(|| Err(Status::not_found("asked to"))));
        }
        self.sent += 1;
        self.metrics.set_request_cost("responses", f64::from(self.sent));
        Poll::Ready(Some(Ok(Raw("x".into()))))
    }
}

fn report_in(trailers: &MetadataMap) -> Option<OrcaLoadReport> {
    let values: Vec<_> = trailers.get_all_bin("endpoint-load-metrics-bin").iter().collect();
    assert!(values.len() < 2, "{values:?}");
    let bytes = values.first()?.to_bytes().expect("Base64");
    Some(OrcaLoadReport::decode(bytes).expect("a report"))
}

async fn call(channel: &Channel, text: &'static str) -> MetadataMap {
    let options = CallOptions::default();
    let called = channel.unary::<Raw, Raw>(&ONE, Request::new(Raw(text.into())), &options);
    match soon(called).await {
        Ok(response) => {
            assert_eq!(response.metadata().get("x-own").expect("its own trailer"), "kept");
            response.metadata().clone()
        }
        Err(status) => {
            assert_eq!(status.code(), Code::NotFound);
            status.metadata().clone()
        }
    }
}

fn costs(name: &str, value: f64) -> HashMap<String, f64> {
    [(name.to_owned(), value)].into()
}

#[tokio::test]
async fn calls_report_in_their_trailers() {
    let metrics = ServerMetrics::new();
    let server = Running::start(|server| server.interceptor(metrics.per_call()).add_service(Costs)).await;
    let found = report_in(&call(&server.channel, "hello").await);
    let cost_only = OrcaLoadReport { request_cost: costs("bytes", 5.0), ..OrcaLoadReport::default() };
    assert_eq!(found, Some(cost_only));

    metrics.set_cpu_utilization(1.5);
    metrics.set_memory_utilization(0.5);
    metrics.set_application_utilization(0.25);
    metrics.set_qps(100.0);
    metrics.set_eps(2.0);
    metrics.set_utilization("queue", 0.125);
    metrics.set_named_metric("open files", -7.0);
    let expected = OrcaLoadReport {
        cpu_utilization: 1.5,
        mem_utilization: 0.75,
        application_utilization: 0.25,
        rps_fractional: 100.0,
        eps: 2.0,
        utilization: costs("queue", 0.125),
        named_metrics: costs("open files", -7.0),
        request_cost: costs("bytes", 6.0),
        ..OrcaLoadReport::default()
    };
    let found = report_in(&call(&server.channel, "memory").await);
    assert_eq!(found.as_ref(), Some(&expected), "the call's own values take precedence");
    let found = report_in(&call(&server.channel, "fail").await);
    let of_server = OrcaLoadReport { mem_utilization: 0.5, request_cost: costs("bytes", 4.0), ..expected };
    assert_eq!(found, Some(of_server.clone()));

    // Out of range.
    metrics.set_cpu_utilization(-1.0);
    metrics.set_memory_utilization(1.1);
    metrics.set_qps(f64::NAN);
    metrics.set_eps(f64::INFINITY);
    metrics.set_utilization("queue", 1.5);
    metrics.set_named_metric("open files", f64::NAN);
    assert_eq!(report_in(&call(&server.channel, "fail").await), Some(of_server.clone()));
    // Removed.
    metrics.set_eps(None);
    metrics.set_utilization("queue", None);
    let fewer = OrcaLoadReport { eps: 0.0, utilization: HashMap::new(), ..of_server };
    assert_eq!(report_in(&call(&server.channel, "fail").await), Some(fewer));
    soon(server.stop()).await;
}

/// The report of a stream is made at its end.
#[tokio::test]
async fn streams_report_at_their_end() {
    let metrics = ServerMetrics::new();
    let server = Running::start(|server| server.interceptor(metrics.per_call()).add_service(Costs)).await;
    let expected =
        Some(OrcaLoadReport { request_cost: costs("responses", 3.0), ..OrcaLoadReport::default() });
    for text in ["succeed", "fail"] {
        let options = CallOptions::default();
        let opened =
            server.channel.server_streaming::<Raw, Raw>(&MANY, Request::new(Raw(text.into())), &options);
        let mut responses: Streaming<Raw> = soon(opened).await.expect("headers").into_inner();
        for _ in 0..3 {
            assert!(soon(responses.message()).await.expect("no error").is_some());
        }
        let trailers = match soon(responses.trailers()).await {
            Ok(trailers) => trailers.expect("trailers"),
            Err(status) => status.metadata().clone(),
        };
        assert_eq!(report_in(&trailers), expected, "{text}");
        assert_eq!(trailers.get("x-own").expect("its own trailer"), "kept");
    }
    soon(server.stop()).await;
}

#[tokio::test]
async fn nothing_is_reported_without_the_interceptor_or_measurements() {
    let server = Running::start(|server| server.add_service(Costs)).await;
    assert_eq!(report_in(&call(&server.channel, "hello").await), None);
    soon(server.stop()).await;
    let metrics = ServerMetrics::new();
    metrics.set_qps(1.0);
    metrics.set_qps(None);
    let server = Running::start(|server| {
        server.interceptor(metrics.per_call()).add_service(metrics.service().interval_min(Duration::ZERO))
    })
    .await;
    let client = OpenRcaServiceClient::new(server.channel.clone());
    let mut reports = soon(client.stream_core_metrics(OrcaLoadReportRequest::default()))
        .await
        .expect("a stream")
        .into_inner();
    assert_eq!(soon(reports.message()).await.expect("a report"), Some(OrcaLoadReport::default()));
    drop(reports);
    soon(server.stop()).await;
}

#[tokio::test]
async fn reports_come_out_of_band() {
    let metrics = ServerMetrics::new();
    let service = metrics.service().interval_min(Duration::from_millis(50));
    let server = Running::start(|server| server.add_service(service)).await;
    let client = OpenRcaServiceClient::new(server.channel.clone());
    // The longer one applies.
    for (asked_ms, expected_ms) in [(None, 50), (Some(-1), 50), (Some(20), 50), (Some(70), 70)] {
        let report_interval = asked_ms.map(duration);
        let request = OrcaLoadReportRequest { report_interval, ..Default::default() };
        metrics.set_qps(1.0);
        let started = Instant::now();
        let mut reports = soon(client.stream_core_metrics(request)).await.expect("a stream").into_inner();
        for qps in 1..=4 {
            let report = soon(reports.message()).await.expect("no end").expect("a report");
            let expected = OrcaLoadReport { rps_fractional: f64::from(qps), ..OrcaLoadReport::default() };
            assert_eq!(report, expected);
            metrics.set_qps(f64::from(qps + 1));
        }
        let took = started.elapsed();
        assert!(took >= Duration::from_millis(3 * expected_ms), "{asked_ms:?}: {took:?}");
    }
    // The first report comes at once; the server's shutdown ends the stream.
    let request = OrcaLoadReportRequest { report_interval: Some(duration(1_000_000)), ..Default::default() };
    let mut reports = soon(client.stream_core_metrics(request)).await.expect("a stream").into_inner();
    assert!(soon(reports.message()).await.expect("no end").is_some());
    let stopped = server.stop();
    let status = soon(reports.message()).await.expect_err("the server drains");
    assert_eq!(status.code(), Code::Unavailable);
    soon(stopped).await;
}

fn duration(ms: i32) -> prost_types::Duration {
    prost_types::Duration { seconds: i64::from(ms / 1000), nanos: ms % 1000 * 1_000_000 }
}
