//! Sample study of our own stack with made-up figures, shaped like a real one. It has rounds of all calls and
//! transports at a size, histograms, kernel figures, a noise floor, and a machine that is temporarily slow.

use std::time::Duration;

use thalweg_measure::distribution::Distribution;
use thalweg_measure::size::ByteSize;
use thalweg_measure::usage::{ProcessUsage, Usage};

use super::comparison::{self, Random};
use crate::load::Outcome;
use crate::load::results::AaResult;
use crate::load::{AaSide, CallsTables, LabResults, Point, PointResult, Transport, Work};
use crate::record::{CallType, LoadResult, Note, Spike};
use crate::sizes::SizesOptions;
use crate::stack::Pair;
use crate::study::rounds::interleaved;

/// Time from the start of one window to the next.
const STEP: Duration = Duration::from_millis(530);
/// Operations in a histogram, independent of the window's number.
const RECORDED: u32 = 2000;
/// Windows in which other programs take half of the processors.
const DISTURBED: std::ops::Range<u32> = 120..150;

/// Calls, including those compared with bare sockets.
const CALLS: [(CallType, u32); 5] = [
    (CallType::Unary, 1),
    (CallType::Unary, 16),
    (CallType::ClientStream, 1),
    (CallType::ServerStream, 1),
    (CallType::BidiStream, 1),
];
const LIMITED: [(CallType, u32); 4] =
    [(CallType::Unary, 1), (CallType::Unary, 16), (CallType::ClientStream, 1), (CallType::BidiStream, 1)];

/// Returns four sizes in four rounds.
pub(crate) fn quick() -> LabResults {
    study(&SizesOptions::quick().sizes, 4)
}

/// Returns fourteen sizes in six rounds.
pub(crate) fn whole() -> LabResults {
    study(&SizesOptions::whole().sizes, 6)
}

fn study(sizes: &[ByteSize], rounds: u32) -> LabResults {
    let mut machine = Machine { random: Random::new(7), windows: 0 };
    let mut aa = Vec::new();
    for (call, in_flight) in [CALLS[0], CALLS[1], CALLS[4]] {
        for (round, label) in interleaved(&[AaSide::A, AaSide::B], rounds) {
            let point = comparison::point(Work::Call(call), in_flight, sizes[0], Transport::Tcp);
            aa.push(AaResult { label, window: machine.window(&point, Some(Pair::ours()), round) });
        }
    }
    let mut points = Vec::new();
    for &size in sizes {
        let at = |transport| {
            let point =
                move |(call, in_flight)| comparison::point(Work::Call(call), in_flight, size, transport);
            let calls = CALLS.map(|call| (point(call), Some(Pair::ours())));
            calls.into_iter().chain(LIMITED.map(|call| (point(call), None)))
        };
        let all: Vec<(Point, Option<Pair>)> = Transport::ALL.into_iter().flat_map(at).collect();
        let in_rounds = interleaved(&all, rounds).into_iter();
        points.extend(in_rounds.map(|(round, (point, pair))| machine.window(&point, pair, round)));
    }
    let base = super::sizes();
    LabResults { planned: points.len(), tables: CallsTables { aa, points, ..base.tables }, ..base }
}

struct Machine {
    random: Random,
    windows: u32,
}

impl Machine {
    fn window(&mut self, point: &Point, pair: Option<Pair>, round: u32) -> PointResult {
        let mut window = comparison::window(point, pair, round, &mut self.random);
        let is_slow = DISTURBED.contains(&self.windows);
        let started = humantime::parse_rfc3339("2026-11-21T08:00:00Z").expect("a valid time");
        let started = started + STEP * self.windows;
        self.windows += 1;
        let Outcome::Measured(measured) = &mut window.outcome else { return window };
        measured.started = humantime::format_rfc3339_nanos(started).to_string();
        if is_slow {
            measured.rate_per_s *= 0.55;
        }
        self.distribute(measured, if is_slow { 1.8 } else { 1.0 });
        window.usage = window.usage.map(|usage| self.usage(usage, is_slow));
        if self.windows.is_multiple_of(97) {
            window.outcome = Outcome::Failed("the driver was lost".to_owned());
            window.usage = None;
        } else if self.windows.is_multiple_of(61) {
            let text = "the client's processors were busy for 98 % of the time".to_owned();
            measured.notes.push(Note { text, invalidates: true });
        }
        window
    }

    /// Sets latencies with a long tail, and their histogram.
    fn distribute(&mut self, measured: &mut LoadResult, slower: f64) {
        let Some(latency) = &mut measured.latency_ns else { return };
        let mut all = Distribution::new();
        for _ in 0..RECORDED {
            let tail = 0.25 * self.random.normal() + 0.1 / self.random.unit().powf(0.35);
            let took = latency.p50 as f64 * slower * tail.exp() / 1.15;
            all.record(took as u64 + 1);
        }
        let Some(summary) = all.latency() else { return };
        *latency = summary;
        measured.spikes = vec![Spike { took_ns: summary.max, at_ns: (self.random.unit() * 4e8) as u64 }];
        measured.histogram = all.histogram();
    }

    fn usage(&mut self, usage: Usage, is_slow: bool) -> Usage {
        let mut of = |used: ProcessUsage| {
            let share = if is_slow { 0.45 } else { 0.004 } * (0.5 + self.random.unit());
            ProcessUsage {
                waited_ns: (usage.window_ns as f64 * share) as u64,
                involuntary_switches: if is_slow { 160 } else { 4 },
                ..used
            }
        };
        Usage { client: of(usage.client), server: of(usage.server), ..usage }
    }
}
