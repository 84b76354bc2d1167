//! Plan of a codec study: windows and their expected time.

use std::time::Duration;

use super::line::{CodecLine, WARM_UPS};
use super::tables::{CallsOf, StepLeftOut};
use super::window::{CodecWindow, Conversions};
use crate::load::gathered::grouped;
use crate::study::rounds::interleaved;
use crate::study::{Plan, PlanError};

/// Time per window in addition to its conversions.
const WINDOW_OVERHEAD: Duration = Duration::from_micros(20);
/// Loads of calls: one alone, and enough to keep both sides busy.
pub(super) const CALLS_IN_FLIGHT: [u32; 2] = [1, 64];
const CALL_ROUNDS: u32 = 3;
/// Time that a peer takes: quick, and whole.
const PEER_TAKES: [Duration; 2] = [Duration::from_secs(115), Duration::from_secs(10 * 60)];

/// Extent of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecOptions {
    /// Numbers of conversions, each measured in its own windows.
    pub steps: Vec<u64>,
    /// Windows of each line at each step.
    pub rounds: u32,
    /// Total time limit of the windows. Steps that exceed it are left out, the longest first.
    pub budget: Duration,
}

impl CodecOptions {
    /// Measures 10 to 10⁷ conversions, within half an hour.
    pub fn whole() -> Self {
        Self { steps: steps(7), rounds: 7, budget: Duration::from_secs(25 * 60) }
    }

    /// Measures 10 to 10⁶ conversions, within a few minutes.
    pub fn quick() -> Self {
        Self { steps: steps(6), rounds: 5, budget: Duration::from_secs(150) }
    }
}

/// Returns 10, 10², … 10ⁿ.
fn steps(last: u32) -> Vec<u64> {
    (1..=last).map(|power| 10_u64.pow(power)).collect()
}

/// A line with an estimate of the time per conversion.
#[derive(Clone, Debug, PartialEq)]
pub struct LineEstimate {
    pub(crate) line: CodecLine,
    /// Whether a duplicate is measured, for the noise floor.
    pub(crate) is_duplicate: bool,
    /// Estimated time per conversion, ns.
    pub(crate) ns_per_conversion: f64,
}

/// Measurements in addition to conversions and allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraMeasurements {
    /// Whether to measure calls with payloads as large as the messages.
    pub calls: bool,
    /// Whether to count instructions under callgrind.
    pub instructions: bool,
    /// Peers that convert the same messages.
    pub peers: Vec<String>,
    /// Whether peers measure as briefly as possible.
    pub quick: bool,
}

/// Windows of conversions, and steps left out for lack of time.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedConversions {
    /// Windows in the order of measuring.
    pub windows: Vec<Conversions>,
    /// Steps left out, without those of duplicates.
    pub left_out: Vec<StepLeftOut>,
}

/// Plans the conversions, message after message. For each step and operation all codecs take turns, in alternating
/// order.
///
/// The longest steps are left out until the rest fits the budget. A step is left out of all rounds or of none.
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
            let of_lines = left_out.into_iter().filter(|estimate| !estimate.is_duplicate);
            planned.left_out.extend(of_lines.map(|estimate| StepLeftOut {
                line: estimate.line.clone(),
                conversions,
                would_take_ns: nanoseconds(window_time(estimate, conversions)),
            }));
            let in_rounds = interleaved(&measured, options.rounds).into_iter();
            planned.windows.extend(in_rounds.map(|(round, estimate)| Conversions {
                line: estimate.line.clone(),
                is_duplicate: estimate.is_duplicate,
                conversions,
                round,
                takes: window_time(estimate, conversions),
            }));
        }
    }
    if planned.windows.is_empty() { Err(PlanError::NothingToMeasure) } else { Ok(planned) }
}

/// Plans the whole study: conversions, allocations, rounds of calls, and separate programs.
pub fn plan(
    conversions: &[Conversions],
    lines: &[LineEstimate],
    calls: &[CallsOf],
    extra: &ExtraMeasurements,
) -> Plan<CodecWindow> {
    let mut windows: Vec<CodecWindow> = conversions.iter().cloned().map(CodecWindow::Conversions).collect();
    let lines = lines.iter().filter(|estimate| !estimate.is_duplicate);
    windows.extend(lines.map(|estimate| CodecWindow::Allocations(estimate.line.clone())));
    if extra.calls {
        for round in 0..CALL_ROUNDS {
            windows.extend(calls.iter().cloned().map(|calls| CodecWindow::Calls { calls, round }));
        }
    }
    windows.extend(extra.instructions.then_some(CodecWindow::Instructions));
    let takes = PEER_TAKES[usize::from(!extra.quick)];
    windows.extend(extra.peers.iter().cloned().map(|name| CodecWindow::Peer { name, takes }));
    Plan { windows, overhead: Duration::ZERO }
}

/// Groups lines that take turns: those with the same message and operation.
fn compared(lines: &[LineEstimate]) -> Vec<Vec<&LineEstimate>> {
    let key = |estimate: &&LineEstimate| (estimate.line.data.clone(), estimate.line.operation);
    grouped(lines, key).into_iter().map(|(_, compared)| compared).collect()
}

fn window_time(line: &LineEstimate, conversions: u64) -> Duration {
    let conversions = conversions + WARM_UPS;
    WINDOW_OVERHEAD + Duration::from_nanos((line.ns_per_conversion * conversions as f64) as u64)
}

/// Returns the longest window time for which all windows within it fit the budget. The shortest step of every line is
/// always measured.
fn longest_window(lines: &[LineEstimate], options: &CodecOptions) -> Duration {
    let first = options.steps.iter().copied().min().unwrap_or(0);
    let mut times: Vec<Duration> =
        lines.iter().flat_map(|line| options.steps.iter().map(|&step| window_time(line, step))).collect();
    times.sort_unstable();
    let least = lines.iter().map(|line| window_time(line, first)).max().unwrap_or_default();
    let mut total = Duration::ZERO;
    let fitting = times.into_iter().take_while(|time| {
        total += *time * options.rounds;
        total <= options.budget
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
            is_duplicate: false,
            ns_per_conversion,
        };
        ns.iter().map(line).collect()
    }

    fn options(steps: &[u64], rounds: u32, budget: Duration) -> CodecOptions {
        CodecOptions { steps: steps.to_vec(), rounds, budget }
    }

    #[test]
    fn codecs_of_a_message_alternate_in_both_orders() {
        let lines = lines(&[("a", "x", 10.0), ("a", "y", 10.0), ("b", "x", 10.0)]);
        let planned = conversions(&lines, &options(&[10], 3, Duration::from_secs(1))).unwrap();
        let index = |line: &CodecLine| lines.iter().position(|estimate| estimate.line == *line).unwrap();
        let order: Vec<(usize, u32)> = planned.windows.iter().map(|it| (index(&it.line), it.round)).collect();
        assert_eq!(order, [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2), (2, 0), (2, 1), (2, 2)]);
        assert_eq!(planned.left_out, []);
    }

    #[test]
    fn longest_steps_are_left_out_until_the_rest_fits() {
        // 10⁶ conversions take 0.1 s with x, 1 s with y and 10 s with z, in two rounds.
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
        // The first step is always kept.
        check(1, &[(0, 1_000_000), (1, 1_000_000), (2, 1_000_000)]);
    }

    #[test]
    fn empty_codec_plan_is_rejected() {
        assert_eq!(conversions(&[], &CodecOptions::quick()), Err(PlanError::NothingToMeasure));
        let no_steps = options(&[], 1, Duration::from_secs(1));
        assert_eq!(conversions(&lines(&[("a", "x", 1.0)]), &no_steps), Err(PlanError::NothingToMeasure));
        assert_eq!(CodecOptions::quick().steps.last(), Some(&1_000_000));
        assert_eq!(CodecOptions::whole().steps.last(), Some(&10_000_000));
    }
}
