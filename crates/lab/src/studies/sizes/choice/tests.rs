use super::words::{carrier_in_few_words, in_few_words, sentence};
use super::*;
use crate::load::gathered::gather_cells;
use crate::load::noise::{Floor, Noise};
use crate::load::{PointResult, Transport, Work};
use crate::stack::Pair;
use crate::tests::sample;

const ROUNDS: u32 = 6;
const SERVER: Kind = Kind { work: Work::Call(CallType::ServerStream), in_flight: 1, connections: 1 };
const CLIENT: Kind = Kind { work: Work::Call(CallType::ClientStream), in_flight: 1, connections: 1 };
const BIDI: Kind = Kind { work: Work::Call(CallType::BidiStream), in_flight: 1, connections: 1 };
const UNARY: Kind = Kind { work: Work::Call(CallType::Unary), in_flight: 16, connections: 1 };

/// Returns windows of 1 KiB around `rate`, with alternating rounds higher and lower by the factor `1 + off`.
fn line(kind: Kind, transport: Transport, rate: f64, off: f64) -> Vec<PointResult> {
    let of_round = |round| rate * if round % 2 == 0 { 1.0 + off } else { 1.0 / (1.0 + off) };
    cell(kind, transport, (0..ROUNDS).map(of_round))
}

fn cell(kind: Kind, transport: Transport, rates: impl Iterator<Item = f64>) -> Vec<PointResult> {
    let at = (kind, transport, ByteSize(1024));
    (0..).zip(rates).map(|(round, rate)| sample::window(Some(Pair::ours()), at, round, rate)).collect()
}

fn choices(lines: &[Vec<PointResult>], noise: Noise) -> Choices {
    let lines = SizesLines::arranged(&gather_cells(lines.iter().flatten()));
    Choices::of(&SizesLines { lines, noise })
}

fn check(lines: &[Vec<PointResult>], noise: Noise, expected: &str, words: &[&str]) {
    let choices = choices(lines, noise);
    assert_eq!(sentence(&choices).as_deref().unwrap_or_default(), expected);
    assert_eq!(choices.calls.iter().map(in_few_words).collect::<Vec<_>>(), words);
}

fn floor(kind: Kind, rate: f64) -> Noise {
    Noise { floors: vec![Floor { kind, rate, median: rate, cells: Vec::new() }] }
}

#[test]
fn fastest_call_is_recommended() {
    check(
        &[line(CLIENT, Transport::Tcp, 200.0, 0.02), line(SERVER, Transport::Tcp, 100.0, 0.02)],
        Noise::default(),
        "Over TCP, messages one way: use client streams at 1 KiB (2.0 times the next).",
        &["client 2.0 × (2.0–2.0)"],
    );
}

#[test]
fn calls_within_the_margin_are_equal() {
    // The two drift apart by 3 % each round.
    check(
        &[line(CLIENT, Transport::Tcp, 100.0, 0.015), line(SERVER, Transport::Tcp, 101.0, -0.015)],
        Noise::default(),
        "Over TCP, messages one way: client streams and server streams are equal at 1 KiB.",
        &["= client, server"],
    );
}

#[test]
fn differences_within_noise_are_inconclusive() {
    check(
        &[line(CLIENT, Transport::Tcp, 100.0, 0.3), line(SERVER, Transport::Tcp, 110.0, -0.3)],
        Noise::default(),
        "Over TCP, messages one way: this study cannot tell client streams and server streams apart at 1 KiB.",
        &["? client, server"],
    );
    // A difference of 30 %, below a floor of 40 %.
    check(
        &[line(CLIENT, Transport::Tcp, 130.0, 0.01), line(SERVER, Transport::Tcp, 100.0, 0.01)],
        floor(SERVER, 0.34),
        "Over TCP, messages one way: this study cannot tell client streams and server streams apart at 1 KiB.",
        &["? client, server"],
    );
}

#[test]
fn calls_with_different_work_are_not_compared() {
    let lines = [
        line(Kind::LONE_CALL, Transport::Tcp, 10.0, 0.02),
        line(UNARY, Transport::Tcp, 100.0, 0.02),
        line(CLIENT, Transport::Tcp, 5000.0, 0.02),
        line(BIDI, Transport::Tcp, 400.0, 0.02),
    ];
    check(
        &lines,
        Noise::default(),
        "Over TCP, each message answered: use bidi streams at 1 KiB (4.0 times the next).",
        &["bidi 4.0 × (4.0–4.0)"],
    );
}

#[test]
fn equal_and_unclear_calls_are_listed_separately() {
    let lines = [
        line(Kind::LONE_CALL, Transport::Uds, 98.0, 0.4),
        line(UNARY, Transport::Uds, 99.0, 0.0),
        line(BIDI, Transport::Uds, 100.0, 0.01),
    ];
    check(
        &lines,
        Noise::default(),
        "Over UDS, each message answered: this study cannot tell lone unary calls and bidi streams apart at 1 KiB, \
         and 16 unary calls in flight equal bidi streams.",
        &["? lone unary, bidi"],
    );
}

#[test]
fn too_few_windows_give_no_recommendation() {
    let mut lines =
        vec![line(CLIENT, Transport::Tcp, 200.0, 0.02), line(SERVER, Transport::Tcp, 100.0, 0.02)];
    for line in &mut lines {
        line.truncate(2);
    }
    assert_eq!(choices(&lines, Noise::default()).calls[0].advice(), Advice::CannotTell);
}

#[test]
fn a_transport_is_chosen_for_each_job() {
    let lines = [
        line(Kind::LONE_CALL, Transport::Tcp, 10.0, 0.02),
        line(Kind::LONE_CALL, Transport::Uds, 20.0, 0.02),
        line(CLIENT, Transport::Tcp, 100.0, 0.01),
        line(CLIENT, Transport::Uds, 101.0, -0.01),
        line(SERVER, Transport::Tcp, 50.0, 0.01),
        line(SERVER, Transport::Uds, 25.0, 0.01),
    ];
    let found = choices(&lines, Noise::default());
    let words: Vec<_> =
        found.transports.iter().map(|choice| (choice.job, carrier_in_few_words(choice))).collect();
    let [one_way, answered, lone] = words.as_slice() else { panic!("{words:?}") };
    assert!(one_way.0 == Job::OneWay && one_way.1.starts_with("= 1.01 ×"), "{one_way:?}");
    // Twice the rate, and half the time.
    assert_eq!(*answered, (Job::Answered, "UDS 2.0 × (2.0–2.0)".to_owned()));
    assert_eq!(*lone, (Job::Lone, "UDS 0.50 × (0.50–0.50)".to_owned()));
}

/// Equal calls must not be recommended, even if the luckiest of several is picked.
#[test]
fn equal_calls_are_rarely_recommended_by_chance() {
    const STUDIES: u32 = 400;
    let mut random = Random(7);
    let mut lucky = 0;
    for _ in 0..STUDIES {
        let lines = [Kind::LONE_CALL, UNARY, BIDI].map(|kind| {
            let rates = (0..ROUNDS).map(|_| 100.0 * (0.1 * random.normal()).exp());
            cell(kind, Transport::Tcp, rates)
        });
        let found = choices(&lines, Noise::default());
        // Faster than any other is already wrong.
        lucky += u32::from(found.calls[0].next().is_some());
    }
    // 5 % of 400 studies, plus two standard deviations.
    assert!(lucky <= 29, "{lucky} of {STUDIES}");
}

/// A linear congruential generator with Knuth's 64-bit constants.
struct Random(u64);

impl Random {
    /// Returns a number above 0 and up to 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) + 1) as f64 / (1_u64 << 31) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}
