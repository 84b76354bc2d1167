//! Tests of the texts on small made-up results.

mod agreement;

use std::time::Duration;

use thalweg_measure::usage::{ProcessUsage, Usage};

use super::analyse::{Channels, ChannelsLine};
use super::answer::{answer, server_advice};
use super::findings::{StackVerdict, verdicts};
use super::limit::Limit;
use super::numbers::{Best, BestNumbers, numbers};
use crate::load::{IdleGaps, LabResults, PointResult, Strategy, SystemCalls, WireTraffic};
use crate::load::{Outcome, WindowResult};
use crate::record::CallType;
use crate::stack::{Pair, Stack};
use crate::study::StudyKind;

/// Returns an empty study with machine and versions.
fn empty() -> LabResults {
    LabResults { study: StudyKind::Channels, ..crate::tests::sample::sizes() }
}

/// Returns a window with this rate and number of connections.
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
    window.usage = Some(Usage {
        window_ns: 1_000_000,
        client: process(300_000),
        server: process(250_000),
        server_memory: None,
    });
    window
}

/// Returns windows of several rounds, whose rates differ by up to `spread`.
fn rounds(
    line: (&str, Strategy),
    round_trip: Duration,
    in_flight: u32,
    (rate, connections): (f64, u32),
    (rounds, spread): (u32, f64),
) -> Vec<PointResult> {
    let shares = [0.0, 1.0, -0.6, -1.0, 0.3, 0.2];
    let of_round = |round: u32| {
        let off = 1.0 + spread * shares[round as usize % shares.len()];
        window(line, round_trip, in_flight, (rate * off, connections)).in_round(round)
    };
    (0..rounds).map(of_round).collect()
}

/// Returns windows that leave no doubt.
fn sure(
    line: (&str, Strategy),
    round_trip: Duration,
    in_flight: u32,
    reached: (f64, u32),
) -> Vec<PointResult> {
    rounds(line, round_trip, in_flight, reached, (4, 0.01))
}

const ONE: Strategy = Strategy::Fixed(1);
const FOUR: Strategy = Strategy::Fixed(4);

/// Returns gRPC C++ as published: channels with equal arguments share a connection, those with their own pool do not.
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
            results.points.extend(sure(("grpc-cpp", ONE), round_trip, in_flight, (one, 1)));
            results.points.extend(sure(("grpc-cpp:own", FOUR), round_trip, in_flight, (own, several)));
            results.points.extend(sure(("grpc-cpp:shared", FOUR), round_trip, in_flight, (shared, 1)));
        }
    }
    results
}

#[test]
fn windows_become_panels_lines_and_cells() {
    let mut results = published();
    let wire = |share| WireTraffic {
        watched_ns: 1,
        all: IdleGaps {
            share,
            gaps: 9,
            p50_ns: 170_000,
            p90_ns: 1,
            p99_ns: 200_000,
            max_ns: 1,
            buckets: Vec::new(),
        },
        each: IdleGaps { share, gaps: 9, p50_ns: 1, p90_ns: 1, p99_ns: 1, max_ns: 1, buckets: Vec::new() },
        sent_bytes: 1,
        received_bytes: 1,
        hop_busy_share: 0.1,
    };
    let at_64 = results.points.iter().position(|window| window.point.in_flight == 64).unwrap();
    let request = results.points[at_64].request.clone();
    results.wire.push(WindowResult::of_other(request.clone(), Ok(wire(0.6))));
    let counted = SystemCalls { client_per_operation: 0.5, server_per_operation: 0.25 };
    results.system_calls.push(WindowResult::of_other(request, Ok(counted)));

    let channels = Channels::of(&results);
    assert_eq!(channels.panels.len(), 2);
    assert_eq!(channels.in_flight(CallType::Unary), [1, 64]);
    let labels: Vec<String> = channels.panels[0].lines.iter().map(ChannelsLine::label).collect();
    assert_eq!(labels, ["grpc-cpp, one channel", "grpc-cpp:own, 4 channels", "grpc-cpp:shared, 4 channels"]);
    let cell = channels.panels[0].lines[0].at(64).unwrap();
    assert_eq!((cell.connections(), cell.system_calls), (Some(1), Some(counted)));
    assert!(cell.wire.as_ref().is_some_and(|wire| wire.all.gaps == 9));
    let used = cell.client().unwrap();
    assert!((used.processors - 0.3).abs() < 1e-9 && (used.ns() - 300.0).abs() < 1e-9, "{used:?}");
    assert!(channels.panels[1].lines[0].at(64).unwrap().wire.is_none());
    let ideal = channels.panels[0].ideal(64).unwrap();
    assert!((ideal / (64.0 * 20e3) - 1.0).abs() < 0.02, "{ideal}");
}

#[test]
fn each_stack_and_delay_has_a_verdict() {
    let results = published();
    let channels = Channels::of(&results);
    let verdicts = verdicts(&channels, &results.settings);
    let check = |index: usize, limit: Limit, parts: &[&str]| {
        let StackVerdict { stack, judgement, text, advice, .. } = &verdicts[index];
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
            "6.0 × (",
            "4 connections with 64 in flight",
            "share one connection: the kernel counts 1",
        ],
    );
    check(1, Limit::Network, &["more calls in flight", "12.5 k/s"]);
    let answer = answer(&verdicts, &results.settings).unwrap();
    assert!(
        answer.starts_with("Of 2 loads, several connections help at 1 (most: 6.0 × (")
            && answer.ends_with(
                "with 4 connections, grpc-cpp, unary, no added delay, 64 in flight), and make no difference at 1."
            ),
        "{answer}"
    );
}

#[test]
fn adaptive_channel_is_compared_with_best_fixed_number() {
    let verdict = |adaptive: f64| {
        let mut results = empty();
        results.points = sure(("thalweg", Strategy::Adaptive), Duration::ZERO, 64, (adaptive, 3));
        results.points.extend(sure(("thalweg", ONE), Duration::ZERO, 64, (50e3, 1)));
        results.points.extend(sure(("thalweg", FOUR), Duration::ZERO, 64, (100e3, 4)));
        let channels = Channels::of(&results);
        verdicts(&channels, &results.settings).swap_remove(0).text
    };
    assert!(verdict(100e3).contains("within 10 %, at all loads"), "{}", verdict(100e3));
    let far = verdict(75e3);
    assert!(
        far.contains("falls behind a fixed number at 1 of 1 load, most with 64 in flight: 0.75 × (")
            && far.contains("of what 4 connections move, with at most 3 connections"),
        "{far}"
    );
}

#[test]
fn external_server_gets_advice_on_number_of_connections() {
    let advice = |rates: [f64; 4], spread: f64| {
        let mut results = empty();
        results.settings.target = Some("10.0.0.1:50051".to_owned());
        results.points = Vec::new();
        for (connections, rate) in [1, 2, 4, 8].into_iter().zip(rates) {
            let line = ("thalweg", Strategy::Fixed(connections));
            for mut window in rounds(line, Duration::ZERO, 64, (rate, connections), (4, spread)) {
                window.pair.as_mut().unwrap().server = Stack::target();
                window.usage = None;
                // Each strategy is off in a different round.
                window.round = (window.round + connections.ilog2()) % 4;
                results.points.push(window);
            }
        }
        let channels = Channels::of(&results);
        assert_eq!(channels.panels[0].lines[1].label(), "thalweg, 2 connections");
        // The client was not observed from outside, so its own report is used.
        assert!(channels.panels[0].lines[0].at(64).unwrap().client().unwrap().processors > 0.0);
        server_advice(&verdicts(&channels, &results.settings), &results.settings).unwrap()
    };
    let yes = advice([100e3, 190e3, 310e3, 315e3], 0.02);
    assert!(
        yes.starts_with("Yes: with 64 calls in flight, 4 connections to 10.0.0.1:50051 move 3.1 × (")
            && yes.ends_with("Best: 4 connections with 64 in flight."),
        "{yes}"
    );
    let no = advice([100e3, 101e3, 99e3, 98e3], 0.005);
    assert!(no.starts_with("No") && no.ends_with("at any of 1 load, up to 64 calls in flight."), "{no}");
    let open = advice([100e3, 130e3, 120e3, 110e3], 0.3);
    assert!(open.starts_with("It is unclear whether") && open.contains("--rounds"), "{open}");
}

#[test]
fn best_number_is_fewest_not_shown_to_be_worse() {
    let check = |rates: &[(u32, f64)], (count, spread): (u32, f64), expected: Option<u32>| {
        let mut results = empty();
        results.points.clear();
        for &(connections, rate) in rates {
            let line = ("thalweg", Strategy::Fixed(connections));
            for mut window in rounds(line, Duration::ZERO, 64, (rate, connections), (count, spread)) {
                window.round = (window.round + connections) % count;
                results.points.push(window);
            }
        }
        let BestNumbers { rows, .. } = numbers(&Channels::of(&results)).swap_remove(0);
        let best = match &rows[0].best {
            Best::One | Best::Only => Some(1),
            Best::Several(several) => Some(several.connections),
            Best::CannotTell => None,
        };
        assert_eq!(best, expected, "{rates:?} {rows:#?}");
    };
    check(&[(1, 100.0), (2, 180.0), (3, 181.0)], (6, 0.02), Some(2));
    check(&[(1, 100.0), (2, 140.0), (3, 180.0)], (6, 0.02), Some(3));
    check(&[(1, 100.0), (2, 101.0), (3, 60.0)], (6, 0.01), Some(1));
    check(&[(1, 100.0), (2, 60.0), (3, 50.0)], (6, 0.02), Some(1));
    check(&[(1, 100.0), (2, 120.0)], (6, 0.2), None);
    // Two windows never give an interval.
    check(&[(1, 100.0), (2, 500.0)], (2, 0.0), None);
    check(&[(1, 100.0)], (6, 0.02), Some(1));
}

#[test]
fn crowded_processor_is_reported() {
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
