//! Tests of verdicts and texts on small made-up results.

use thalweg_measure::figures::ratio_figure;
use thalweg_measure::statistics::PAIRS_MIN;

use thalweg_measure::usage::{ProcessUsage, Usage};

use super::findings::{answer, contrasts, losses, verdicts};
use super::*;
use crate::load::results::AaResult;
use crate::load::used::ResourceUsage;
use crate::load::{AaSide, Pattern, SystemCalls, Work};
use crate::load::{LabResults, PointResult};
use crate::load::{Outcome, WindowRequest, WindowResult};
use crate::record::CallType;
use crate::tests::sample::{self, sizes};

const UNARY_16: Kind = Kind { work: Work::Call(CallType::Unary), in_flight: 16, connections: 1 };
const KIB: ByteSize = ByteSize(1024);

fn pair(name: &str) -> Pair {
    Pair::own(name.parse().unwrap())
}

fn compared(results: &LabResults) -> StacksCompared<'_> {
    let (ours, cells) = (results.reference(), results.gather_cells());
    let own: Vec<_> =
        cells.iter().filter(|cell| cell.pair.is_none_or(|pair| *pair == ours)).cloned().collect();
    StacksCompared::of(ours, &cells, &SizesLines::of(results, &own))
}

fn window(pair: Option<Pair>, (kind, size): (Kind, ByteSize), round: u32, rate: f64) -> PointResult {
    sample::window(pair, (kind, Transport::Tcp, size), round, rate)
}

/// Returns rounds of ours and of tonic's in one cell.
fn rounds(at: (Kind, ByteSize), ours: &[f64], theirs: &[f64]) -> LabResults {
    let of = |pair: Pair, rates: &[f64]| {
        let window = |(round, &rate): (usize, &f64)| window(Some(pair.clone()), at, round as u32, rate);
        rates.iter().enumerate().map(window).collect::<Vec<_>>()
    };
    let points = [of(Pair::ours(), ours), of(pair("tonic"), theirs)].concat();
    let mut results = sizes();
    results.points = points;
    results
}

fn aa(at: (Kind, ByteSize), a: &[f64], b: &[f64]) -> Vec<AaResult> {
    let of = |label, rates: &[f64]| {
        let aa = |(round, &rate): (usize, &f64)| AaResult {
            label,
            window: window(Some(Pair::ours()), at, round as u32, rate),
        };
        rates.iter().enumerate().map(aa).collect::<Vec<_>>()
    };
    [of(AaSide::A, a), of(AaSide::B, b)].concat()
}

fn check(results: &LabResults, expected: Verdict) -> StacksCompared<'_> {
    let comparison = compared(results);
    let against = comparison.cells[0].against(&pair("tonic")).unwrap();
    assert_eq!(against.rate.verdict, expected, "{against:?}");
    comparison
}

#[test]
fn verdicts_follow_from_the_interval() {
    let at = (UNARY_16, KIB);
    check(&rounds(at, &[200.0, 210.0, 205.0, 190.0], &[100.0, 101.0, 99.0, 100.0]), Verdict::Faster);
    check(&rounds(at, &[100.0, 101.0, 99.0, 100.0], &[200.0, 210.0, 205.0, 190.0]), Verdict::Slower);
    check(&rounds(at, &[100.0, 102.0, 98.0, 101.0], &[100.0, 101.0, 99.0, 100.0]), Verdict::NoDifference);
    // The interval includes 1 but is wide.
    check(&rounds(at, &[100.0, 140.0, 80.0, 110.0], &[100.0, 101.0, 99.0, 100.0]), Verdict::CannotTell);
    check(&rounds(at, &[200.0; PAIRS_MIN - 1], &[100.0; PAIRS_MIN - 1]), Verdict::CannotTell);
}

#[test]
fn difference_within_noise_floor_does_not_count() {
    let at = (UNARY_16, KIB);
    let mut results = rounds(at, &[104.0, 104.1, 104.0], &[100.0, 100.0, 100.1]);
    check(&results, Verdict::Faster);
    results.aa = aa(at, &[105.0, 105.0, 105.0], &[100.0, 100.0, 100.0]);
    let comparison = check(&results, Verdict::NoDifference);
    assert!((comparison.noise.rate(UNARY_16) - 1.05_f64.ln()).abs() < 1e-9);
    // A kind without its own A/A measurement uses the largest floor.
    assert!((comparison.noise.rate(Kind::LONE_CALL) - 1.05_f64.ln()).abs() < 1e-9);
    assert!(!comparison.noise.is_measured(Kind::LONE_CALL));
}

#[test]
fn lower_latency_is_better() {
    let lone = rounds((Kind::LONE_CALL, KIB), &[200.0; 4], &[100.0; 4]);
    let comparison = check(&lone, Verdict::Faster);
    let median = comparison.cells[0].against[0].median.unwrap();
    assert_eq!(median.verdict, Verdict::Faster);
    assert!((median.ratio.unwrap().ratio - 0.5).abs() < 1e-6);
    let overlapping = rounds((UNARY_16, KIB), &[200.0; 4], &[100.0; 4]);
    let overlapping = check(&overlapping, Verdict::Faster);
    assert_eq!(overlapping.cells[0].against[0].median, None);
}

#[test]
fn failed_windows_are_not_paired_but_counted() {
    let mut results = rounds((UNARY_16, KIB), &[200.0; 5], &[100.0; 5]);
    results.points[0].outcome = Outcome::Failed("no answer".to_owned());
    let Outcome::Measured(measured) = &mut results.points[6].outcome else { unreachable!() };
    measured.errors.insert("UNAVAILABLE".to_owned(), 1);
    let comparison = check(&results, Verdict::Faster);
    let cell = &comparison.cells[0];
    let against = &cell.against[0];
    assert_eq!(against.rate.ratio.unwrap().pairs, 3);
    assert_eq!((cell.ours.excluded(), against.theirs.excluded()), (1, 1));

    for window in &mut results.points[5..] {
        window.outcome = Outcome::Failed("no answer".to_owned());
    }
    let comparison = check(&results, Verdict::NotMeasured);
    assert_eq!(comparison.cells[0].against[0].theirs.excluded(), 5);
    assert_eq!(comparison.tally(&pair("tonic")), Tally { not_measured: 1, ..Tally::default() });
}

#[test]
fn cost_of_an_operation_includes_both_processes() {
    let mut results = rounds((UNARY_16, KIB), &[200.0; 3], &[100.0; 3]);
    let process = |user_ns| ProcessUsage {
        user_ns,
        system_ns: 500,
        voluntary_switches: 40,
        involuntary_switches: 10,
        ..ProcessUsage::default()
    };
    for window in &mut results.points {
        window.usage =
            Some(Usage { window_ns: 1, client: process(1000), server: process(2000), server_memory: None });
    }
    let counted = SystemCalls { client_per_operation: 0.5, server_per_operation: 0.25 };
    let mut point = results.points[0].point.clone();
    point.duration *= 2;
    let request = WindowRequest { point, pair: Some(Pair::ours()), strategy: None, round: 0 };
    results.system_calls = vec![WindowResult::of_other(request, Ok(counted))];
    let comparison = compared(&results);
    // Each window has 100 operations.
    let ComparedCell { ours, against, .. } = &comparison.cells[0];
    let ResourceUsage { user_ns, system_ns, switches, .. } = ours.server().unwrap();
    assert_eq!((user_ns, system_ns, switches, ours.system_calls), (20.0, 5.0, 0.5, Some(counted)));
    assert!(against[0].theirs.client().is_some() && against[0].theirs.system_calls.is_none());
}

#[test]
fn bare_socket_is_the_reference() {
    let mut results = rounds((UNARY_16, KIB), &[100.0; 3], &[50.0; 3]);
    let echo = Kind { work: Work::Socket(Pattern::Echo), in_flight: 16, connections: 1 };
    results.points.extend((0..3).map(|round| window(None, (echo, KIB), round, 400.0)));
    let comparison = compared(&results);
    assert_eq!((comparison.cells.len(), comparison.peers.len()), (1, 1));
    let reference = comparison.cells[0].reference.unwrap();
    assert!((reference.rate_per_s - 400.0).abs() < 1e-9 && (reference.share.ratio - 0.25).abs() < 1e-9);
}

#[test]
fn mean_over_opposed_sizes_has_no_interval() {
    let both = |second: (f64, f64)| {
        let mut results = rounds((UNARY_16, ByteSize(0)), &[800.0; 3], &[100.0; 3]);
        results.points.extend(rounds((UNARY_16, KIB), &[second.0; 3], &[second.1; 3]).tables.points);
        compared(&results).aggregates().swap_remove(0)
    };
    let alike = both((200.0, 100.0));
    assert!((alike.mean - 4.0).abs() < 1e-9 && alike.interval.is_some());
    assert_eq!((alike.most.0, alike.least.0), (ByteSize(0), KIB));
    let opposed = both((50.0, 100.0));
    assert!((opposed.mean - 2.0).abs() < 1e-9);
    assert_eq!((opposed.interval, opposed.tally.faster, opposed.tally.slower), (None, 1, 1));
}

#[test]
fn mixed_pair_is_not_a_separate_peer() {
    let mut results = rounds((UNARY_16, KIB), &[100.0; 3], &[50.0; 3]);
    let mixed = Pair { client: "tonic".parse().unwrap(), ..Pair::ours() };
    results.points.extend((0..3).map(|round| window(Some(mixed.clone()), (UNARY_16, KIB), round, 80.0)));
    let comparison = compared(&results);
    assert_eq!((comparison.peers, comparison.mixed), (vec![pair("tonic")], vec![mixed]));
    assert_eq!(comparison.cells[0].against.len(), 2);
}

#[test]
fn with_one_server_ours_is_our_client_at_it() {
    let at_cpp = |client: &str| Pair { client: client.parse().unwrap(), server: "grpc-cpp".parse().unwrap() };
    let mut results = rounds((UNARY_16, KIB), &[], &[]);
    for (client, rate) in [("thalweg", 100.0), ("tonic", 80.0), ("grpc-cpp", 120.0)] {
        let window = |round| window(Some(at_cpp(client)), (UNARY_16, KIB), round, rate);
        results.points.extend((0..3).map(window));
    }
    let comparison = compared(&results);
    assert_eq!(comparison.ours, at_cpp("thalweg"));
    assert_eq!((comparison.peers.len(), comparison.mixed.len()), (2, 0));
    let verdict = |client| comparison.cells[0].against(&at_cpp(client)).unwrap().rate.verdict;
    assert_eq!((verdict("tonic"), verdict("grpc-cpp")), (Verdict::Faster, Verdict::Slower));
}

#[test]
fn sentences_name_both_winners() {
    let mut results = rounds((UNARY_16, ByteSize(0)), &[800.0; 3], &[100.0; 3]);
    let rest = [(KIB, 200.0, 100.0), (ByteSize(4096), 80.0, 100.0), (ByteSize(8192), 100.0, 100.0)];
    for (size, ours, theirs) in rest {
        results.points.extend(rounds((UNARY_16, size), &[ours; 3], &[theirs; 3]).tables.points);
    }
    let comparison = compared(&results);
    assert_eq!(
        contrasts(&comparison)[0].text,
        "Unary, 16 in flight over TCP: 8.0 × tonic’s rate (8.0–8.0) at 0 B, 2.0 × (2.0–2.0) at 1 KiB; no difference \
         at 8 KiB; tonic is faster: ours reaches 0.80 × (0.80–0.80) at 4 KiB."
    );
    assert_eq!(
        answer(&comparison).unwrap(),
        "thalweg is faster than tonic in 2 of 4 cases. It is slower than tonic in 1."
    );
    let losses = losses(&comparison);
    assert_eq!((losses.len(), losses[0].size, losses[0].is_rate), (1, ByteSize(4096), true));
    assert_eq!(verdicts(comparison.tally(&pair("tonic"))), "faster in 2, no difference in 1, slower in 1");
}

#[test]
fn empty_comparison_has_no_findings() {
    let mut empty = sizes();
    empty.points.clear();
    let comparison = compared(&empty);
    assert_eq!((comparison.cells.len(), answer(&comparison)), (0, None));
}

#[test]
fn ratios_have_enough_digits_to_show_a_difference() {
    for (ratio, shown) in [
        (0.05, "0.050"),
        (0.806, "0.81"),
        (1.0, "1.000"),
        (0.9961, "0.996"),
        (1.02, "1.02"),
        (1.998, "2.0"),
        (8.13, "8.1"),
        (19.97, "20"),
        (123.4, "123"),
    ] {
        assert_eq!(ratio_figure(ratio), shown);
    }
}
