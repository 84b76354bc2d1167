//! Load reports (ORCA, gRFC A51) as weights of `weighted_round_robin` (gRFC A58).

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use thalweg_engine::policy::{PolicyConfig, WeightedRoundRobinConfig};
use thalweg_engine::{Channel, Code, EndpointList, Status};
use tokio::time::sleep;

use crate::balance::{Network, Server, calls, endpoints, settle};
use crate::raw::{Pieces, read, request, send};
use crate::support::feed::Feed;
use crate::support::{Echo, Served, echo, raw, server_config, soon};

const STREAM: &str = "xds.service.orca.v3.OpenRcaService/StreamCoreMetrics";

/// Encodes an `OrcaLoadReport`: 100 queries a second with this CPU utilization.
fn report(cpu: f64) -> Vec<u8> {
    [&[0x09][..], &cpu.to_le_bytes(), &[0x31], &100_f64.to_le_bytes()].concat()
}

/// Returns trailers with a value in place of a report in Base64.
fn trailers(value: &str) -> HeaderMap {
    [("endpoint-load-metrics-bin", value)]
        .into_iter()
        .map(|(name, value)| {
            (http::HeaderName::from_static(name), HeaderValue::from_str(value).expect("ASCII"))
        })
        .collect()
}

fn in_base64(report: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |bits: u32| char::from(DIGITS[(bits & 63) as usize]);
    let group = |bytes: &[u8]| {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(bytes.get(at).copied().unwrap_or(0)));
        (0..=bytes.len()).map(move |at| digit(bits >> (18 - 6 * at))).collect::<String>()
    };
    report.chunks(3).map(group).collect()
}

fn weighted(network: &Network, config: WeightedRoundRobinConfig) -> Channel {
    let numbers: Vec<u16> = vec![1, 2, 3];
    network.channel(EndpointList::new(endpoints(&numbers)), |channel| {
        channel.load_balancing = PolicyConfig::WeightedRoundRobin(config);
    })
}

/// Makes 7000 calls, and returns the percentage of each server.
async fn percentages(channel: &Channel, services: &[Echo; 3]) -> [f64; 3] {
    let before = services.each_ref().map(Echo::started);
    calls(channel, 7000).await;
    std::array::from_fn(|at| (services[at].started() - before[at]) as f64 / 70.0)
}

fn assert_shares(found: [f64; 3], expected: [f64; 3]) {
    let is_near = found.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() < 1.0);
    assert!(is_near, "{found:?} %, expected {expected:?} %");
}

const EQUAL: [f64; 3] = [33.3, 33.3, 33.3];
/// Weights of 4, 2 and 1, for utilizations of 0.25, 0.5 and 1.
const BY_LOAD: [f64; 3] = [57.1, 28.6, 14.3];

/// Starts three servers that send these reports in the trailers of their calls.
fn start_with_trailers(network: &Network, values: [&str; 3]) -> [Echo; 3] {
    std::array::from_fn(|at| {
        let service = Echo { trailers: trailers(values[at]), ..Echo::default() };
        network.set(at as u16 + 1, Server::Up(Served::echo(&service)));
        service
    })
}

#[tokio::test(start_paused = true)]
async fn calls_follow_the_reports_in_trailers() {
    let network = Network::default();
    let values = [0.25, 0.5, 1.0].map(|cpu| in_base64(&report(cpu)));
    let services = start_with_trailers(&network, values.each_ref().map(|value| &**value));
    let channel = weighted(&network, WeightedRoundRobinConfig::default());
    calls(&channel, 1).await;
    settle().await;
    assert_shares(percentages(&channel, &services).await, EQUAL);
    // Reports count after the blackout period of 10 s.
    sleep(Duration::from_secs(9)).await;
    assert_shares(percentages(&channel, &services).await, EQUAL);
    sleep(Duration::from_secs(2)).await;
    assert_shares(percentages(&channel, &services).await, BY_LOAD);
    // They expire after 3 minutes.
    sleep(Duration::from_secs(170)).await;
    assert_shares(percentages(&channel, &services).await, BY_LOAD);
    sleep(Duration::from_secs(182)).await;
    assert_shares(percentages(&channel, &services).await, EQUAL);
}

#[tokio::test(start_paused = true)]
async fn bad_reports_are_ignored() {
    let network = Network::default();
    let (light, heavy) = (in_base64(&report(0.25)), in_base64(&report(0.75)));
    // Truncated, empty, and only the costs of a call.
    for bad in ["CQAA", "", "IgwKAWERAAAAAAAA8D8="] {
        let services = start_with_trailers(&network, [&*light, &*heavy, bad]);
        let config = WeightedRoundRobinConfig::default().blackout_period(Duration::ZERO);
        let channel = weighted(&network, config);
        calls(&channel, 1).await;
        settle().await;
        calls(&channel, 30).await;
        sleep(Duration::from_secs(2)).await;
        // Without a report, a server counts as average: weights of 4, 4/3 and 8/3.
        assert_shares(percentages(&channel, &services).await, [50.0, 16.7, 33.3]);
    }
}

/// Makes 60 calls of a kind.
async fn calls_of_kind(channel: &Channel, kind: &str) {
    let is_raw = kind.starts_with("raw");
    let text = if kind.ends_with("failing") { "fail" } else { "x" };
    for _ in 0..60 {
        if is_raw {
            let message = [&[0, 0, 0, 0, text.len() as u8][..], text.as_bytes()].concat();
            let request = request("/test.Echo/Echo", "application/grpc", Pieces::of([&message]));
            let response = soon(send(channel, request)).await.expect("a response");
            soon(read(response.into_body())).await.expect("a whole response");
        } else {
            let outcome = soon(echo(channel, raw(text))).await;
            assert_eq!(outcome.is_err(), text == "fail", "{outcome:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn reports_of_all_kinds_of_calls_count() {
    for kind in ["", "unary", "unary, failing", "raw", "raw, failing"] {
        let network = Network::default();
        let values = [0.25, 0.5, 1.0].map(|cpu| in_base64(&report(cpu)));
        let services = start_with_trailers(&network, values.each_ref().map(|value| &**value));
        let channel = weighted(&network, WeightedRoundRobinConfig::default().blackout_period(Duration::ZERO));
        channel.connect().await.expect("servers");
        settle().await;
        if !kind.is_empty() {
            calls_of_kind(&channel, kind).await;
        }
        sleep(Duration::from_secs(2)).await;
        // The reports of these calls would count later.
        let expected = if kind.is_empty() { EQUAL } else { BY_LOAD };
        assert_shares(percentages(&channel, &services).await, expected);
    }
}

/// A policy that reads no reports is not affected by them.
#[tokio::test(start_paused = true)]
async fn round_robin_reads_no_reports() {
    let network = Network::default();
    let values = [0.25, 0.5, 1.0].map(|cpu| in_base64(&report(cpu)));
    let services = start_with_trailers(&network, values.each_ref().map(|value| &**value));
    let channel = network.channel(EndpointList::new(endpoints(&[1, 2, 3])), |_| {});
    calls(&channel, 1).await;
    sleep(Duration::from_secs(20)).await;
    assert_shares(percentages(&channel, &services).await, EQUAL);
}

fn start_with_feeds(network: &Network, feeds: &[Feed; 3]) -> [Echo; 3] {
    std::array::from_fn(|at| {
        // Reports in trailers do not count then (gRFC A58).
        let service = Echo { trailers: trailers(&in_base64(&report(7.0))), ..Echo::default() };
        let router = feeds[at].router(STREAM, service.router());
        network.set(at as u16 + 1, Server::Up(Served::start(server_config(|_| {}), router)));
        service
    })
}

fn out_of_band() -> WeightedRoundRobinConfig {
    let config = WeightedRoundRobinConfig::default().enable_oob_load_report(true);
    config.oob_reporting_period(Duration::from_secs(3)).blackout_period(Duration::ZERO)
}

#[tokio::test(start_paused = true)]
async fn calls_follow_the_reports_out_of_band() {
    let network = Network::default();
    let feeds = [0.25, 0.5, 1.0].map(|cpu| Feed::new(&report(cpu)));
    let services = start_with_feeds(&network, &feeds);
    let channel = weighted(&network, out_of_band());
    calls(&channel, 1).await;
    sleep(Duration::from_secs(2)).await;
    assert_shares(percentages(&channel, &services).await, BY_LOAD);
    assert_eq!(feeds[0].requests(), [raw("\x0a\x02\x08\x03")], "every 3 s");
    feeds[0].send(&report(1.0));
    // Ignored: no report.
    feeds[1].send(b"\x09");
    sleep(Duration::from_secs(2)).await;
    assert_shares(percentages(&channel, &services).await, [25.0, 50.0, 25.0]);
    assert_eq!(feeds.each_ref().map(Feed::opened), [1, 1, 1]);
    let counts = channel.snapshot().calls;
    assert_eq!((counts.started, counts.failed), (14_001, 0));
}

#[tokio::test(start_paused = true)]
async fn stream_of_reports_is_opened_again() {
    let network = Network::default();
    let feeds = [0.25, 0.5, 1.0].map(|cpu| Feed::new(&report(cpu)));
    let services = start_with_feeds(&network, &feeds);
    let channel = weighted(&network, out_of_band());
    calls(&channel, 1).await;
    sleep(Duration::from_secs(2)).await;
    feeds[0].fail(Status::new(Code::Internal, "broken"));
    feeds[1].fail(Status::new(Code::Unimplemented, "no such method"));
    sleep(Duration::from_secs(3)).await;
    assert!(feeds[0].opened() > 2, "{}", feeds[0].opened());
    assert_eq!(feeds[1].opened(), 1, "gRFC A51: not on the same connection");
    feeds[0].send(&report(0.5));
    sleep(Duration::from_secs(5)).await;
    assert_shares(percentages(&channel, &services).await, [40.0, 40.0, 20.0]);
}

#[tokio::test(start_paused = true)]
async fn servers_without_reports_get_equal_shares() {
    let network = Network::default();
    let services = [1, 2, 3].map(|number| network.start(number));
    let channel = weighted(&network, out_of_band());
    calls(&channel, 1).await;
    sleep(Duration::from_secs(20)).await;
    assert_shares(percentages(&channel, &services).await, EQUAL);
}
