use super::super::findings::{Verdict, advised, answer, verdicts};
use super::super::limit::Limit;
use super::*;
use crate::load::results::{Outcome, SystemCallsResult, WireResult};
use crate::load::{Idle, StudyKind};

/// A study that is empty but for what both sides run on.
pub(super) fn empty() -> LabResults {
    LabResults { study: StudyKind::Channels, ..crate::tests::sample::sizes() }
}

/// A window of this rate, over so many connections.
fn window(
    (client, strategy): (&str, Strategy),
    round_trip: Duration,
    in_flight: u32,
    (rate, connections): (f64, u32),
) -> PointResult {
    let mut window = empty().points.swap_remove(0);
    window.point.in_flight = in_flight;
    window.point.round_trip = round_trip;
    let client: crate::stack::Stack = client.parse().unwrap();
    let server = client.name().parse().unwrap();
    window.pair = Some(Pair { client, server });
    window.strategy = Some(strategy);
    let Outcome::Measured(measured) = &mut window.outcome else { unreachable!("the sample was measured") };
    measured.rate_per_s = rate;
    measured.messages = 1000;
    measured.connections.established = Some(connections);
    let process = |user_ns| ProcessUsage { user_ns, voluntary_switches: 500, ..ProcessUsage::default() };
    window.usage = Some(Usage { window_ns: 1_000_000, client: process(300_000), server: process(250_000) });
    window
}

const ONE: Strategy = Strategy::Fixed(1);
const FOUR: Strategy = Strategy::Fixed(4);

/// gRPC C++, as was published: channels with equal arguments share a connection, those with their own pool do not.
fn published() -> LabResults {
    let mut results = empty();
    results.points = Vec::new();
    for (round_trip, lone) in [(Duration::ZERO, 20e3), (Duration::from_millis(5), 195.0)] {
        let is_near = round_trip.is_zero();
        let most = if is_near { 120e3 } else { 1e9 };
        for in_flight in [1, 64] {
            let ideal: f64 = lone * f64::from(in_flight);
            let (one, shared, own) = (ideal.min(most), ideal.min(most), ideal.min(6.0 * most));
            let several = in_flight.min(4);
            results.points.extend([
                window(("grpc-cpp", ONE), round_trip, in_flight, (one, 1)),
                window(("grpc-cpp:own", FOUR), round_trip, in_flight, (own, several)),
                window(("grpc-cpp:shared", FOUR), round_trip, in_flight, (shared, 1)),
            ]);
        }
    }
    results
}

#[test]
fn windows_become_panels_lines_and_cells() {
    let mut results = published();
    let wire = |share| Wire {
        watched_ns: 1,
        all: Idle {
            share,
            gaps: 9,
            p50_ns: 170_000,
            p90_ns: 1,
            p99_ns: 200_000,
            max_ns: 1,
            buckets: Vec::new(),
        },
        each: Idle { share, gaps: 9, p50_ns: 1, p90_ns: 1, p99_ns: 1, max_ns: 1, buckets: Vec::new() },
        sent_bytes: 1,
        received_bytes: 1,
        hop_busy_share: 0.1,
    };
    let at_64 = results.points.iter().position(|window| window.point.in_flight == 64).unwrap();
    let PointResult { point, pair, strategy, .. } = results.points[at_64].clone();
    let pair = pair.unwrap();
    let outcome = WireOutcome::Watched(Box::new(wire(0.6)));
    results.wire.push(WireResult { point: point.clone(), pair: pair.clone(), strategy, outcome });
    let counted = SystemCalls { client_per_operation: 0.5, server_per_operation: 0.25 };
    let outcome = SystemCallsOutcome::Counted(counted);
    results.system_calls.push(SystemCallsResult { point, pair, strategy, outcome });

    let channels = Channels::of(&results);
    assert_eq!(channels.panels.len(), 2);
    assert_eq!(channels.in_flight(CallType::Unary), [1, 64]);
    let labels: Vec<String> = channels.panels[0].lines.iter().map(Line::label).collect();
    assert_eq!(labels, ["grpc-cpp, one channel", "grpc-cpp:own, 4 channels", "grpc-cpp:shared, 4 channels"]);
    let cell = channels.panels[0].lines[0].at(64).unwrap();
    assert_eq!((cell.connections, cell.system_calls), (Some(1), Some(counted)));
    assert!(cell.wire.as_ref().is_some_and(|wire| wire.all.gaps == 9));
    let used = cell.client.unwrap();
    assert!((used.processors - 0.3).abs() < 1e-9 && (used.ns_per_operation - 300.0).abs() < 1e-9, "{used:?}");
    assert_eq!(channels.panels[1].lines[0].at(64).unwrap().wire, None);
    assert!((channels.panels[0].ideal(64).unwrap() - 64.0 * 20e3).abs() < 1e-6);
}

#[test]
fn each_stack_and_delay_has_its_verdict() {
    let results = published();
    let channels = Channels::of(&results);
    let verdicts = verdicts(&channels, &results.settings);
    let check = |index: usize, limit: Limit, parts: &[&str]| {
        let Verdict { stack, judgement, text, advice, .. } = &verdicts[index];
        assert_eq!((stack.as_str(), judgement.limit), ("grpc-cpp", limit), "{text}");
        for part in parts {
            assert!(text.contains(part) || advice.contains(part), "{part:?} is not in {text:?} {advice:?}");
        }
    };
    assert_eq!(verdicts.len(), 2);
    check(
        0,
        Limit::Channel,
        &[
            "“grpc-cpp:own, 4 channels”",
            "6.0 times",
            "Use 4 connections",
            "share one connection: the kernel counts 1",
        ],
    );
    check(1, Limit::Network, &["more calls in flight", "12.5 k/s"]);
    let answer = answer(&channels, &verdicts, &results.settings).unwrap();
    assert!(
        answer.contains("grpc-cpp") && answer.contains("6.0 times") && answer.contains("64 calls"),
        "{answer}"
    );
}

#[test]
fn the_adaptive_channel_is_held_against_the_best() {
    let verdict = |adaptive: f64| {
        let mut results = empty();
        results.points = vec![
            window(("thalweg", Strategy::Adaptive), Duration::ZERO, 64, (adaptive, 3)),
            window(("thalweg", ONE), Duration::ZERO, 64, (100e3, 1)),
            window(("thalweg", FOUR), Duration::ZERO, 64, (104e3, 4)),
        ];
        let channels = Channels::of(&results);
        verdicts(&channels, &results.settings).swap_remove(0).text
    };
    assert!(verdict(102e3).contains("within 5 % of the best"), "{}", verdict(102e3));
    let far = verdict(78e3);
    assert!(
        far.contains("reaches 75 % of the best at its worst point, 64 in flight")
            && far.contains("3 connections"),
        "{far}"
    );
}

#[test]
fn who_asks_of_a_server_is_told_how_many_connections_are_enough() {
    let advice = |rates: [f64; 4]| {
        let mut results = empty();
        results.settings.target = Some("10.0.0.1:50051".to_owned());
        results.points = Vec::new();
        for (connections, rate) in [1, 2, 4, 8].into_iter().zip(rates) {
            let mut window =
                window(("thalweg", Strategy::Fixed(connections)), Duration::ZERO, 64, (rate, connections));
            window.pair.as_mut().unwrap().server = Stack::target();
            window.usage = None;
            results.points.push(window);
        }
        let channels = Channels::of(&results);
        assert_eq!(channels.panels[0].lines[1].label(), "thalweg, 2 connections");
        // Nobody looked at the client from outside: it says itself what it used.
        assert!(channels.panels[0].lines[0].at(64).unwrap().client.unwrap().processors > 0.0);
        advised(&channels, &verdicts(&channels, &results.settings), &results.settings).unwrap()
    };
    let yes = advice([100e3, 190e3, 310e3, 315e3]);
    assert!(
        yes.starts_with("Yes") && yes.contains("4 connections to 10.0.0.1:50051 move 3.1 times"),
        "{yes}"
    );
    let no = advice([100e3, 101e3, 99e3, 98e3]);
    assert!(no.starts_with("No") && no.contains("64 calls in flight"), "{no}");
}

#[test]
fn a_crowded_processor_is_told() {
    let text = |waited_ns: u64| {
        let mut results = empty();
        results.points = vec![window(("thalweg", ONE), Duration::ZERO, 64, (100e3, 1))];
        results.points[0].usage.as_mut().unwrap().client.waited_ns = waited_ns;
        let channels = Channels::of(&results);
        verdicts(&channels, &results.settings).swap_remove(0).text
    };
    assert!(text(900_000).contains("0.9 threads of the client were ready and waited"), "{}", text(900_000));
    assert!(!text(10_000).contains("ready to run"), "{}", text(10_000));
}
