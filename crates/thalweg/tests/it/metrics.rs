//! OpenTelemetry metrics of channels and servers for real calls: gRFC A66, A78 and A94.

#![allow(clippy::float_cmp, reason = "sums of whole numbers are exact")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::support::peer::{HEAD, OK, Peer, channel_to_test};
use crate::support::recorded::{Metric, Recorded};
use crate::support::servers::{Port, Running};
use crate::support::spans::Spans;
use crate::support::{CHAT, COUNT, ECHO, Echo, Items, REPEAT, items, raw, soon, start, until};
use thalweg::channel::policy::{PolicyConfig, WeightedRoundRobinConfig};
use thalweg::channel::{Endpoint, EndpointList, Lanes, Locality};
use thalweg::metadata::{MetadataMap, MetadataValue};
use thalweg::server::{Methods, Service};
use thalweg::{
    CallOptions, Channel, Code, Encoding, Method, Raw, Request, Response, Server, ServiceOptions, Status,
    Traces,
};
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::Kind;

const CALL_DURATION: &str = "grpc.client.call.duration";
const STARTED: &str = "grpc.client.attempt.started";
const DURATION: &str = "grpc.client.attempt.duration";
const HEDGES: &str = "grpc.client.call.hedges";
const RETRIES: &str = "grpc.client.call.transparent_retries";
const SENT: &str = "grpc.client.attempt.sent_total_compressed_message_size";
const RECEIVED: &str = "grpc.client.attempt.rcvd_total_compressed_message_size";
const SERVER_STARTED: &str = "grpc.server.call.started";
const SERVER_DURATION: &str = "grpc.server.call.duration";
const SERVER_SENT: &str = "grpc.server.call.sent_total_compressed_message_size";
const SERVER_RECEIVED: &str = "grpc.server.call.rcvd_total_compressed_message_size";
const DISCONNECTIONS: &str = "grpc.subchannel.disconnections";
const CONNECTED: &str = "grpc.subchannel.connection_attempts_succeeded";
const NOT_CONNECTED: &str = "grpc.subchannel.connection_attempts_failed";
const OPEN: &str = "grpc.subchannel.open_connections";
const FALLBACK: &str = "grpc.lb.wrr.rr_fallback";
const NOT_YET_USABLE: &str = "grpc.lb.wrr.endpoint_weight_not_yet_usable";
const STALE: &str = "grpc.lb.wrr.endpoint_weight_stale";
const WEIGHTS: &str = "grpc.lb.wrr.endpoint_weights";
const INSECURE: (&str, &str) = ("grpc.security_level", "none");
const LANES: &str = "thalweg.channel.lanes";

/// A client and a server that report to the same provider.
struct Measured {
    recorded: Recorded,
    channel: Channel,
    /// In gRPC's form, with scheme.
    target: String,
}

impl Measured {
    async fn new() -> Self {
        Self::with(None).await
    }

    async fn with(traces: Option<Traces>) -> Self {
        let recorded = Recorded::new();
        let mut server = Server::builder().add_service(Echo::default()).metrics(recorded.metrics());
        if let Some(traces) = traces.clone() {
            server = server.traces(traces);
        }
        let target = start(server).await;
        let mut channel = Channel::builder(&target).lanes(Lanes::fixed(1)).metrics(recorded.metrics());
        if let Some(traces) = traces {
            channel = channel.traces(traces);
        }
        let channel = channel.connect().await.expect("a server");
        Self { recorded, channel, target: format!("dns:///{target}") }
    }

    /// Checks that both sides recorded `count` calls of a method with this status, and their message bytes in both
    /// directions.
    fn check(&self, method: &str, status: &str, count: u64, sent: usize, received: usize) {
        let client = [("grpc.method", method), ("grpc.target", &self.target), ("grpc.status", status)];
        let server = [("grpc.method", method), ("grpc.status", status)];
        let check = |name: &str, labels: &[(&str, &str)], sum: Option<usize>| {
            let point = self.recorded.point(name, labels);
            let point =
                point.unwrap_or_else(|| panic!("{name} {labels:?}: {:#?}", self.recorded.all().get(name)));
            assert_eq!(point.count, count, "{name} {labels:?}");
            match sum {
                Some(sum) => assert_eq!(point.sum, sum as f64, "{name} {labels:?}"),
                None => assert!(point.sum > 0.0, "{name} {labels:?}"),
            }
        };
        check(CALL_DURATION, &client, None);
        check(DURATION, &client, None);
        check(SENT, &client, Some(sent));
        check(RECEIVED, &client, Some(received));
        check(SERVER_DURATION, &server, None);
        check(SERVER_SENT, &server, Some(received));
        check(SERVER_RECEIVED, &server, Some(sent));
    }

    /// Returns the numbers of started attempts and calls.
    fn started(&self, method: &str) -> (i64, i64) {
        let client = [("grpc.method", method), ("grpc.target", &*self.target)];
        let server = [("grpc.method", method)];
        (self.recorded.sum(STARTED, &client), self.recorded.sum(SERVER_STARTED, &server))
    }

    async fn unary(&self, method: &Method, message: Raw, options: &CallOptions) -> Result<Raw, Status> {
        self.channel.unary(method, Request::new(message), options).await.map(Response::into_inner)
    }
}

#[tokio::test]
async fn unary_calls_are_counted_on_both_sides() {
    let measured = Measured::new().await;
    let options = CallOptions::default();
    for _ in 0..3 {
        measured.unary(&ECHO, raw("12345"), &options).await.expect("a response");
    }
    // A message sent in pieces, and one handled in a task.
    measured.unary(&ECHO, raw(vec![7; 100_000]), &options).await.expect("a response");
    measured.unary(&ECHO, raw("yield"), &options).await.expect("a response");
    measured.check("test.Echo/Echo", "OK", 5, 100_020, 100_020);

    measured.unary(&ECHO, raw("fail"), &options).await.expect_err("asked to");
    measured.check("test.Echo/Echo", "NOT_FOUND", 1, 4, 0);
    assert!(!measured.recorded.all().contains_key(RETRIES));
    assert_eq!(measured.started("test.Echo/Echo"), (6, 6));
}

#[tokio::test]
async fn sizes_are_compressed_sizes() {
    let measured = Measured::new().await;
    let mut options = CallOptions::default();
    options.send_compressed = Some(Encoding::Gzip);
    measured.unary(&ECHO, raw(vec![0; 50_000]), &options).await.expect("a response");
    let labels = [("grpc.method", "test.Echo/Echo"), ("grpc.status", "OK")];
    let received = measured.recorded.point(SERVER_RECEIVED, &labels).expect("a call").sum;
    assert!(received > 0.0 && received < 1000.0, "{received} bytes of zeros, compressed");
    measured.check("test.Echo/Echo", "OK", 1, received as usize, 50_000);
}

#[tokio::test]
async fn stream_is_one_call_with_all_messages() {
    check_streams(Measured::new().await).await;
}

#[tokio::test]
async fn traces_do_not_change_metrics() {
    let measured = Measured::with(Some(Spans::new().traces())).await;
    measured.unary(&ECHO, raw("12345"), &CallOptions::default()).await.expect("a response");
    measured.check("test.Echo/Echo", "OK", 1, 5, 5);
    assert_eq!(measured.started("test.Echo/Echo"), (1, 1));
    check_streams(measured).await;
}

async fn check_streams(measured: Measured) {
    let options = CallOptions::default();
    let requests: Items<Raw> = items(["a", "bc", "def"].map(raw).into());
    let responses = measured.channel.bidi_streaming::<_, Raw>(&CHAT, Request::new(requests), &options).await;
    let mut responses = responses.expect("a stream").into_inner();
    while soon(responses.message()).await.expect("no error").is_some() {}
    measured.check("test.Echo/Chat", "OK", 1, 6, 6);

    let requests: Items<Raw> = items(vec![raw("ab"); 10]);
    let count = measured.channel.client_streaming::<_, Raw>(&COUNT, Request::new(requests), &options).await;
    assert_eq!(count.expect("a response").into_inner(), raw("10 20"));
    measured.check("test.Echo/Count", "OK", 1, 20, 5);

    let responses =
        measured.channel.server_streaming::<_, Raw>(&REPEAT, Request::new(raw("7 40000")), &options).await;
    let mut responses = responses.expect("a stream").into_inner();
    while soon(responses.message()).await.expect("no error").is_some() {}
    measured.check("test.Echo/Repeat", "OK", 1, 7, 280_000);
}

#[tokio::test]
async fn dropped_calls_are_cancelled() {
    let measured = Measured::new().await;
    let mut options = CallOptions::default();
    let call = {
        let (channel, options) = (measured.channel.clone(), options.clone());
        let call = async move { channel.unary::<_, Raw>(&ECHO, Request::new(raw("sleep")), &options).await };
        tokio::spawn(call)
    };
    until(|| measured.started("test.Echo/Echo") == (1, 1)).await;
    call.abort();
    let cancelled = [("grpc.method", "test.Echo/Echo"), ("grpc.status", "CANCELLED")];
    until(|| measured.recorded.point(SERVER_DURATION, &cancelled).is_some()).await;
    measured.check("test.Echo/Echo", "CANCELLED", 1, 5, 0);

    // A dropped stream counts, too.
    let responses =
        measured.channel.server_streaming::<_, Raw>(&REPEAT, Request::new(raw("1000 40000")), &options).await;
    drop(responses.expect("a stream"));
    let cancelled = [("grpc.method", "test.Echo/Repeat"), ("grpc.status", "CANCELLED")];
    until(|| measured.recorded.point(SERVER_DURATION, &cancelled).is_some()).await;

    options.timeout = Some(Duration::from_millis(20));
    let status = measured.unary(&ECHO, raw("sleep"), &options).await.expect_err("it sleeps");
    assert_eq!(status.code(), Code::DeadlineExceeded);
    // This call's requests continue while the sender is alive.
    let (_requests, source) = tokio::sync::mpsc::unbounded_channel::<Raw>();
    let request = Request::new(crate::support::Receiver(source));
    let opened = measured.channel.bidi_streaming::<_, Raw>(&CHAT, request, &options).await;
    let status = match opened {
        Err(status) => status,
        Ok(responses) => responses.into_inner().message().await.expect_err("nothing comes"),
    };
    assert_eq!(status.code(), Code::DeadlineExceeded);
    let exceeded = [
        ("grpc.method", "test.Echo/Chat"),
        ("grpc.target", &*measured.target),
        ("grpc.status", "DEADLINE_EXCEEDED"),
    ];
    assert_eq!(measured.recorded.point(CALL_DURATION, &exceeded).map(|point| point.count), Some(1));
    let exceeded = [
        ("grpc.method", "test.Echo/Echo"),
        ("grpc.target", &*measured.target),
        ("grpc.status", "DEADLINE_EXCEEDED"),
    ];
    assert_eq!(measured.recorded.point(CALL_DURATION, &exceeded).map(|point| point.count), Some(1));
    let took = measured.recorded.point(DURATION, &exceeded).expect("an attempt").sum;
    assert!(took >= 0.02, "{took} s");
}

#[tokio::test]
async fn unknown_methods_are_reported_as_other() {
    let measured = Measured::new().await;
    let options = CallOptions::default();
    let invented = Method::from_path("test.Echo/Invented").expect("a path");
    let status = measured.unary(&invented, raw("x"), &options).await.expect_err("there is none");
    assert_eq!(status.code(), Code::Unimplemented);
    assert_eq!(measured.started("other"), (1, 1));
    let unimplemented = [("grpc.method", "other"), ("grpc.status", "UNIMPLEMENTED")];
    assert!(measured.recorded.point(SERVER_DURATION, &unimplemented).is_some());

    // A client can be configured to name methods and to omit the target.
    let metrics = measured.recorded.metrics().names_all_methods(true).names_target(false);
    let target = measured.target.clone();
    let named = Channel::builder(target).metrics(metrics).connect().await.expect("a server");
    let echo = Method::from_path("test.Echo/Echo").expect("a path");
    let response = named.unary::<_, Raw>(&echo, Request::new(raw("x")), &options).await;
    response.expect("a response");
    let labels = [("grpc.method", "test.Echo/Echo"), ("grpc.target", "other")];
    assert_eq!(measured.recorded.sum(STARTED, &labels), 1);
}

/// A refused stream counts as an attempt of the same call.
#[tokio::test]
async fn transparent_retry_is_another_attempt() {
    let recorded = Recorded::new();
    let (builder, mut accepted) = channel_to_test();
    let channel = builder.metrics(recorded.metrics()).connect_lazy().expect("a channel");
    let call = crate::support::spawn_echo(&channel, "message");
    let mut peer = Peer::server(soon(accepted.recv()).await.expect("it connects"), &[]).await;
    let first = soon(peer.next_of(Kind::Headers)).await.stream;
    peer.reset(first, ErrorCode::RefusedStream).send().await;
    let second = soon(peer.next_of(Kind::Headers)).await.stream;
    peer.headers(second, false, HEAD).message(second, false, b"yes").headers(second, true, OK).send().await;
    soon(call).await.expect("no panic").expect("a response");

    let all = recorded.all();
    let point = |name: &str, status: &str| {
        let ended = |labels: &&crate::support::recorded::Labels| {
            labels.get("grpc.status").is_some_and(|s| s == status)
        };
        let (_, point) = all[name].points.iter().find(|(labels, _)| ended(labels))?;
        Some((point.count, point.sum))
    };
    let started: f64 = all[STARTED].points.values().map(|point| point.sum).sum();
    assert_eq!(started, 2.0);
    assert_eq!(point(SENT, "UNAVAILABLE"), Some((1, 7.0)));
    assert_eq!((point(SENT, "OK"), point(RECEIVED, "OK")), (Some((1, 7.0)), Some((1, 3.0))));
    assert_eq!(point(CALL_DURATION, "OK").map(|(count, _)| count), Some(1));
    assert_eq!(point(CALL_DURATION, "UNAVAILABLE"), None);
    let retries: Vec<_> = all[RETRIES].points.values().map(|point| (point.count, point.sum)).collect();
    assert_eq!(retries, [(1, 1.0)]);
    assert_eq!(all[RETRIES].unit, "{transparent_retry}");
}

/// Hedged attempts are attempts of one call.
#[tokio::test]
async fn hedged_attempts_are_counted_one_by_one() {
    for is_stream in [false, true] {
        check_hedged(is_stream).await;
    }
}

async fn check_hedged(is_stream: bool) {
    let recorded = Recorded::new();
    let (builder, mut accepted) = channel_to_test();
    let hedging = r#"{ "methodConfig": [{ "name": [{}], "hedgingPolicy": { "maxAttempts": 3 } }] }"#;
    let channel =
        builder.metrics(recorded.metrics()).service_config(hedging).connect_lazy().expect("a channel");
    let call = tokio::spawn(async move {
        if !is_stream {
            return crate::support::echo(&channel, raw("message")).await.map(drop);
        }
        let mut responses = crate::support::chat(&channel, items(vec![raw("mess"), raw("age")])).await?;
        while responses.message().await?.is_some() {}
        Ok(())
    });
    let mut peer = Peer::server(soon(accepted.recv()).await.expect("it connects"), &[]).await;
    let mut streams = Vec::new();
    while streams.len() < 3 {
        let data = soon(peer.next_of(Kind::Data)).await;
        streams.extend(data.end_stream.then_some(data.stream));
    }
    let stream = streams[1];
    peer.headers(stream, false, HEAD).message(stream, false, b"yes").headers(stream, true, OK).send().await;
    soon(call).await.expect("no panic").expect("a response");

    let all = recorded.all();
    let points = |name: &str, status: &str| {
        let points = all[name].points.iter();
        let of = |labels: &crate::support::recorded::Labels| {
            labels.get("grpc.status").is_some_and(|s| s == status)
        };
        let points = points.filter(|(labels, _)| of(labels)).map(|(_, point)| (point.count, point.sum));
        points.collect::<Vec<_>>()
    };
    let started: f64 = all[STARTED].points.values().map(|point| point.sum).sum();
    assert_eq!(started, 3.0);
    assert_eq!((points(SENT, "OK"), points(RECEIVED, "OK")), (vec![(1, 7.0)], vec![(1, 3.0)]));
    assert_eq!((points(SENT, "CANCELLED"), points(RECEIVED, "CANCELLED")), (vec![(2, 14.0)], vec![(2, 0.0)]));
    assert_eq!(points(CALL_DURATION, "OK").iter().map(|(count, _)| *count).collect::<Vec<_>>(), [1]);
    assert_eq!(points(CALL_DURATION, "CANCELLED"), []);
    let hedges: Vec<_> = all[HEDGES].points.values().map(|point| (point.count, point.sum)).collect();
    assert_eq!((hedges, all[HEDGES].unit.as_str()), (vec![(1, 2.0)], "{hedge}"));
}

#[tokio::test]
async fn connections_and_lanes_are_counted() {
    let recorded = Recorded::new();
    let port = Port::new();
    let target = format!("dns:///{}", port.target());
    let at = [("grpc.target", &*target)];
    let ended = |why: &str| {
        recorded.sum(DISCONNECTIONS, &[("grpc.target", &*target), ("grpc.disconnect_error", why)])
    };
    let running = Running::start(port.listen());
    let builder = Channel::builder(port.target()).lanes(Lanes::fixed(2)).metrics(recorded.metrics());
    let channel = builder.connect().await.expect("a server");
    let known = |connected, failed, open| {
        let found = [CONNECTED, NOT_CONNECTED].map(|name| recorded.sum(name, &at));
        found == [connected, failed] && recorded.sum(OPEN, &[at[0], INSECURE]) == open
    };
    assert!(known(2, 0, 2), "{:#?}", recorded.all());
    assert_eq!(recorded.sum(LANES, &at), 2);

    running.stop().await;
    until(|| known(2, 0, 0)).await;
    assert_eq!(ended("GOAWAY NO_ERROR"), 2);

    // No server is listening.
    crate::support::echo(&channel, raw("x")).await.expect_err("nobody is there");
    assert!(known(2, 1, 0), "{:#?}", recorded.all());

    let running = Running::start(port.listen());
    let mut options = CallOptions::default();
    options.wait_for_ready = Some(true);
    let call = channel.unary::<_, Raw>(&ECHO, Request::new(raw("x")), &options);
    soon(call).await.expect("a response");
    crate::support::echo(&channel, raw("x")).await.expect("a response");
    until(|| known(4, 1, 2)).await;
    drop(channel);
    until(|| known(4, 1, 0)).await;
    assert_eq!(ended("subchannel shutdown"), 2);
    until(|| recorded.sum(LANES, &at) == 0).await;
    running.kill().await;
}

#[tokio::test]
async fn broken_connection_reports_its_cause() {
    let recorded = Recorded::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let target = listener.local_addr().expect("bound").to_string();
    let accepting = tokio::spawn(async move { listener.accept().await.expect("a connection").0 });
    let builder = Channel::builder(&target).lanes(Lanes::fixed(1)).metrics(recorded.metrics());
    let connecting = tokio::spawn(builder.connect());
    let mut socket = accepting.await.expect("no panic");
    // An empty SETTINGS frame, then a reset.
    tokio::io::AsyncWriteExt::write_all(&mut socket, &[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.expect("it is read");
    let channel = connecting.await.expect("no panic").expect("a server");
    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).expect("an option");
    drop(socket);
    let target = format!("dns:///{target}");
    let labels = [("grpc.target", &*target), ("grpc.disconnect_error", "connection reset")];
    until(|| recorded.sum(DISCONNECTIONS, &labels) == 1).await;
    drop(channel);
}

#[tokio::test]
async fn connections_to_servers_are_counted_by_locality() {
    let recorded = Recorded::new();
    let [near, far] = [Port::new(), Port::new()];
    let running = [&near, &far].map(|port| Running::start(port.listen()));
    let endpoint = |port: &Port| Endpoint::from(port.target().parse::<SocketAddr>().expect("an address"));
    let zone = |zone| Locality::new("eu", zone, "");
    let list = [endpoint(&near).locality(zone("a")), endpoint(&far)];
    let builder = Channel::builder("dns:///a-fleet.test:1").resolver(EndpointList::new(list));
    let builder = builder.load_balancing(PolicyConfig::RoundRobin).lanes(Lanes::fixed(1));
    let channel = builder.metrics(recorded.metrics()).connect().await.expect("two servers");
    let target = ("grpc.target", "dns:///a-fleet.test:1");
    let near_by = ("grpc.lb.locality", r#"{region="eu", zone="a", sub_zone=""}"#);
    let known = |connected, open| {
        let is_known = |labels: &[(&str, &str)]| {
            recorded.sum(CONNECTED, labels) == connected
                && recorded.sum(OPEN, &[labels, &[INSECURE]].concat()) == open
        };
        is_known(&[target, near_by]) && is_known(&[target])
    };
    until(|| known(1, 1)).await;
    drop(channel);
    until(|| known(1, 0)).await;
    let shutdown = ("grpc.disconnect_error", "subchannel shutdown");
    assert_eq!(recorded.sum(DISCONNECTIONS, &[target, near_by, shutdown]), 1);
    for running in running {
        running.kill().await;
    }
}

/// Fails all calls, with a load report: 100 queries a second at this CPU utilization.
struct Loaded(f64);

#[expect(clippy::unused_async, reason = "handlers are async")]
impl Loaded {
    async fn echo(self: Arc<Self>, _: Request<Raw>) -> Result<Response<Raw>, Status> {
        let report = [&[0x09][..], &self.0.to_le_bytes(), &[0x31], &100_f64.to_le_bytes()].concat();
        let mut trailers = MetadataMap::new();
        trailers.insert_bin("endpoint-load-metrics-bin", MetadataValue::from_bytes(&report));
        Err(Status::with_metadata(Code::Aborted, "with a report", trailers))
    }
}

impl Service for Loaded {
    const NAME: &'static str = "test.Echo";

    fn register(self, methods: &mut Methods<'_>) {
        methods.unary("Echo", &Arc::new(self), &ServiceOptions::default(), Loaded::echo);
    }
}

/// gRFC A78.
#[tokio::test]
async fn weights_of_weighted_round_robin_are_recorded() {
    let recorded = Recorded::new();
    let endpoint = |target: String| Endpoint::from(target.parse::<SocketAddr>().expect("an address"));
    let near = start(Server::builder().add_service(Loaded(0.5))).await;
    let far = start(Server::builder().add_service(Loaded(0.25))).await;
    let list = [endpoint(near).locality(Locality::new("eu", "a", "")), endpoint(far)];
    let policy = WeightedRoundRobinConfig::default()
        .blackout_period(Duration::ZERO)
        .weight_update_period(Duration::from_millis(100))
        .weight_expiration_period(Duration::from_secs(2));
    let builder = Channel::builder("dns:///a-fleet.test:1").resolver(EndpointList::new(list));
    let builder = builder.load_balancing(PolicyConfig::WeightedRoundRobin(policy));
    let channel = builder.metrics(recorded.metrics()).connect().await.expect("two servers");
    let target = ("grpc.target", "dns:///a-fleet.test:1");
    let near = &[target, ("grpc.lb.locality", r#"{region="eu", zone="a", sub_zone=""}"#)][..];
    let far = &[target][..];
    let both = [near, far];
    let weights = |labels: &[(&str, &str)]| recorded.point(WEIGHTS, labels).unwrap_or_default();

    until(|| both.iter().all(|labels| recorded.sum(NOT_YET_USABLE, labels) >= 2)).await;
    assert!(recorded.sum(FALLBACK, far) >= 2);
    assert!(both.iter().all(|labels| weights(labels).count >= 2 && weights(labels).sum == 0.0));
    assert!(both.iter().all(|labels| recorded.sum(STALE, labels) == 0));

    for _ in 0..10 {
        crate::support::echo(&channel, raw("x")).await.expect_err("the server fails calls");
    }
    // Weights are queries by utilization.
    until(|| weights(near).sum > 0.0 && weights(near).sum % 200.0 == 0.0).await;
    until(|| weights(far).sum > 0.0 && weights(far).sum % 400.0 == 0.0).await;
    let fallbacks = recorded.sum(FALLBACK, far);
    until(|| both.iter().all(|labels| recorded.sum(STALE, labels) >= 2)).await;
    until(|| recorded.sum(FALLBACK, far) > fallbacks).await;
    let all = recorded.all();
    for (name, unit) in
        [(FALLBACK, "{update}"), (NOT_YET_USABLE, "{endpoint}"), (STALE, "{endpoint}"), (WEIGHTS, "{weight}")]
    {
        assert_eq!(all[name].unit, unit, "{name}");
    }
    assert_eq!(all[FALLBACK].points.len(), 1);
}

#[tokio::test]
async fn units_and_boundaries_follow_grfc() {
    let measured = Measured::new().await;
    measured.unary(&ECHO, raw("x"), &CallOptions::default()).await.expect("a response");
    let all = measured.recorded.all();
    let check = |name: &str, unit: &str, bounds: Option<(usize, f64, f64)>| {
        let Metric { scope, unit: found, points } = &all[name];
        assert_eq!((scope, &**found), (&format!("thalweg {}", env!("CARGO_PKG_VERSION")), unit), "{name}");
        let point = points.values().next().unwrap_or_else(|| panic!("{name}: nothing recorded"));
        let edges = point.bounds.len();
        let found = (edges > 0).then(|| (edges, point.bounds[1], point.bounds[edges - 1]));
        assert_eq!(found, bounds, "{name}");
    };
    let (latency, size) = (Some((41, 0.00001, 100.0)), Some((14, 1024.0, 4_294_967_296.0)));
    check(CALL_DURATION, "s", latency);
    check(DURATION, "s", latency);
    check(SERVER_DURATION, "s", latency);
    for name in [SENT, RECEIVED, SERVER_SENT, SERVER_RECEIVED] {
        check(name, "By", size);
    }
    check(STARTED, "{attempt}", None);
    check(SERVER_STARTED, "{call}", None);
    check(CONNECTED, "{attempt}", None);
    check(OPEN, "{connection}", None);
    check(LANES, "{lane}", None);
}
