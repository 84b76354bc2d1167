//! Which windows a codec study has, and how long they will take.

use std::time::Duration;

use super::line::{CodecLine, WARM_UPS};
use super::tables::{CallsOf, StepLeftOut};
use super::window::{CodecWindow, Conversions};
use crate::load::gathered::grouped;
use crate::study::rounds::interleaved;
use crate::study::{Plan, PlanError};

/// What starting a window takes besides its conversions.
const WINDOW_OVERHEAD: Duration = Duration::from_micros(20);
/// Calls by themselves, and enough of them to keep both sides busy.
pub(super) const CALLS_IN_FLIGHT: [u32; 2] = [1, 64];
const CALL_ROUNDS: u32 = 3;
/// What a peer takes, quick and whole.
const PEER_TAKES: [Duration; 2] = [Duration::from_secs(115), Duration::from_secs(10 * 60)];

/// How far a study goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecOptions {
    /// Numbers of conversions, each a window of its own.
    pub steps: Vec<u64>,
    /// How many windows each line has at each step.
    pub rounds: u32,
    /// All windows together take no longer. Steps that would are left out, the longest first.
    pub budget: Duration,
}

impl CodecOptions {
    /// 10 to 10⁷ conversions, within half an hour.
    pub fn whole() -> Self {
        Self { steps: steps(7), rounds: 7, budget: Duration::from_secs(25 * 60) }
    }

    /// 10 to 10⁶ conversions, within some minutes.
    pub fn quick() -> Self {
        Self { steps: steps(6), rounds: 5, budget: Duration::from_secs(150) }
    }
}

/// 10, 10², … 10ⁿ.
fn steps(last: u32) -> Vec<u64> {
    (1..=last).map(|power| 10_u64.pow(power)).collect()
}

/// A line, and how long one conversion takes according to a first look.
#[derive(Clone, Debug, PartialEq)]
pub struct LineEstimate {
    /// Which.
    pub(crate) line: CodecLine,
    /// It is measured a second time beside itself, for the noise floor.
    pub(crate) again: bool,
    /// ns.
    pub(crate) ns_per_conversion: f64,
}

/// What is measured besides conversions and their allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Besides {
    /// Calls whose payloads are as large as the messages.
    pub calls: bool,
    /// Instructions, under callgrind.
    pub instructions: bool,
    /// Peers that convert the same messages.
    pub peers: Vec<String>,
    /// Peers measure for as short as makes sense.
    pub quick: bool,
}

/// The windows of conversions in their order, and what there was no time for.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedConversions {
    /// In the order of measuring.
    pub windows: Vec<Conversions>,
    /// Of lines, and not of their doubles.
    pub left_out: Vec<StepLeftOut>,
}

/// Plans the conversions: message after message, and for each step and operation all codecs in turn, there and back.
///
/// What takes longest is left out until the rest fits the budget. A step is left out of all rounds or of none.
pub fn conversions(lines: &[LineEstimate], options: &CodecOptions) -> Result<PlannedConversions, PlanError> {
    if lines.is_empty() || options.steps.is_empty() || options.rounds == 0 {
        return Err(PlanError::NothingToMeasure);
    }
    let longest = longest_window(lines, options);
    let mut planned = PlannedConversions { windows: Vec::new(), left_out: Vec::new() };
    for compared in compared(lines) {
        for &conversions in &options.steps {
            let (measured, left_out): (Vec<&LineEstimate>, Vec<&LineEstimate>) =
                compared.iter().partition(|estimate| window_time(estimate, conversions) <= longest);
            let of_lines = left_out.into_iter().filter(|estimate| !estimate.again);
            planned.left_out.extend(of_lines.map(|estimate| StepLeftOut {
                line: estimate.line.clone(),
                conversions,
                would_take_ns: nanoseconds(window_time(estimate, conversions)),
            }));
            let in_rounds = interleaved(&measured, options.rounds).into_iter();
            planned.windows.extend(in_rounds.map(|(round, estimate)| Conversions {
                line: estimate.line.clone(),
                again: estimate.again,
                conversions,
                round,
                takes: window_time(estimate, conversions),
            }));
        }
    }
    if planned.windows.is_empty() { Err(PlanError::NothingToMeasure) } else { Ok(planned) }
}

/// The whole study: the conversions, their allocations, calls in rounds, and what programs of their own find.
pub fn plan(
    conversions: &[Conversions],
    lines: &[LineEstimate],
    calls: &[CallsOf],
    besides: &Besides,
) -> Plan<CodecWindow> {
    let mut windows: Vec<CodecWindow> = conversions.iter().cloned().map(CodecWindow::Conversions).collect();
    let lines = lines.iter().filter(|estimate| !estimate.again);
    windows.extend(lines.map(|estimate| CodecWindow::Allocations(estimate.line.clone())));
    if besides.calls {
        for round in 0..CALL_ROUNDS {
            windows.extend(calls.iter().cloned().map(|calls| CodecWindow::Calls { calls, round }));
        }
    }
    windows.extend(besides.instructions.then_some(CodecWindow::Instructions));
    let takes = PEER_TAKES[usize::from(!besides.quick)];
    windows.extend(besides.peers.iter().cloned().map(|name| CodecWindow::Peer { name, takes }));
    Plan { windows, overhead: Duration::ZERO }
}

/// Lines that take turns: those of one message and one operation.
fn compared(lines: &[LineEstimate]) -> Vec<Vec<&LineEstimate>> {
    let key = |estimate: &&LineEstimate| (estimate.line.data.clone(), estimate.line.operation);
    grouped(lines, key).into_iter().map(|(_, compared)| compared).collect()
}

fn window_time(line: &LineEstimate, conversions: u64) -> Duration {
    let conversions = conversions + WARM_UPS;
    WINDOW_OVERHEAD + Duration::from_nanos((line.ns_per_conversion * conversions as f64) as u64)
}

/// How long a window may take at most, so that all that take no longer fit the budget together. The shortest step of
/// every line is measured in any case.
fn longest_window(lines: &[LineEstimate], options: &CodecOptions) -> Duration {
    let first = options.steps.iter().copied().min().unwrap_or(0);
    let mut times: Vec<Duration> =
        lines.iter().flat_map(|line| options.steps.iter().map(|&step| window_time(line, step))).collect();
    times.sort_unstable();
    let least = lines.iter().map(|line| window_time(line, first)).max().unwrap_or_default();
    let mut taken = Duration::ZERO;
    let fitting = times.into_iter().take_while(|time| {
        taken += *time * options.rounds;
        taken <= options.budget
    });
    fitting.last().unwrap_or_default().max(least)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::codec::line::Operation;

    fn lines(ns: &[(&str, &str, f64)]) -> Vec<LineEstimate> {
        let line = |&(data, codec, ns_per_conversion): &(&str, &str, f64)| LineEstimate {
            line: CodecLine { data: data.to_owned(), codec: codec.to_owned(), operation: Operation::Encode },
            again: false,
            ns_per_conversion,
        };
        ns.iter().map(line).collect()
    }

    fn options(steps: &[u64], rounds: u32, budget: Duration) -> CodecOptions {
        CodecOptions { steps: steps.to_vec(), rounds, budget }
    }

    #[test]
    fn codecs_of_a_message_take_turns_there_and_back() {
        let lines = lines(&[("a", "x", 10.0), ("a", "y", 10.0), ("b", "x", 10.0)]);
        let planned = conversions(&lines, &options(&[10], 3, Duration::from_secs(1))).unwrap();
        let index = |line: &CodecLine| lines.iter().position(|estimate| estimate.line == *line).unwrap();
        let order: Vec<(usize, u32)> = planned.windows.iter().map(|it| (index(&it.line), it.round)).collect();
        assert_eq!(order, [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2), (2, 0), (2, 1), (2, 2)]);
        assert_eq!(planned.left_out, []);
    }

    #[test]
    fn what_takes_longest_is_left_out_until_the_rest_fits() {
        // 10⁶ of x take 0.1 s, of y 1 s, of z 10 s; in two rounds.
        let lines = lines(&[("a", "x", 100.0), ("a", "y", 1000.0), ("a", "z", 10_000.0)]);
        let check = |budget_ms: u64, expected: &[(usize, u64)]| {
            let budget = Duration::from_millis(budget_ms);
            let planned = conversions(&lines, &options(&[1000, 1_000_000], 2, budget)).unwrap();
            let index = |line: &CodecLine| lines.iter().position(|estimate| estimate.line == *line).unwrap();
            let left_out: Vec<(usize, u64)> =
                planned.left_out.iter().map(|it| (index(&it.line), it.conversions)).collect();
            assert_eq!(left_out, expected, "{budget_ms} ms");
            let total: Duration = planned.windows.iter().map(|it| it.takes).sum();
            assert!(total <= budget || planned.windows.iter().all(|it| it.conversions == 1000));
        };
        check(23_000, &[]);
        check(3_000, &[(2, 1_000_000)]);
        check(500, &[(1, 1_000_000), (2, 1_000_000)]);
        // The first step stays, however little time there is.
        check(1, &[(0, 1_000_000), (1, 1_000_000), (2, 1_000_000)]);
    }

    #[test]
    fn nothing_is_no_study() {
        assert_eq!(conversions(&[], &CodecOptions::quick()), Err(PlanError::NothingToMeasure));
        let no_steps = options(&[], 1, Duration::from_secs(1));
        assert_eq!(conversions(&lines(&[("a", "x", 1.0)]), &no_steps), Err(PlanError::NothingToMeasure));
        assert_eq!(CodecOptions::quick().steps.last(), Some(&1_000_000));
        assert_eq!(CodecOptions::whole().steps.last(), Some(&10_000_000));
    }
}
