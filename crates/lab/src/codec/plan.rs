//! Which windows a codec study has, and how long they will take.

use std::time::Duration;

use super::{Line, WARM_UPS};
use crate::plan::PlanError;

/// What starting a window takes besides its conversions.
const WINDOW_OVERHEAD: Duration = Duration::from_micros(20);

/// How far a study goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Numbers of conversions, each a window of its own.
    pub steps: Vec<u64>,
    /// How many windows each line has at each step.
    pub rounds: u32,
    /// All windows together take no longer. Steps that would are left out, the longest first.
    pub budget: Duration,
}

impl Options {
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
pub struct Estimate {
    /// Which.
    pub line: Line,
    /// It is measured a second time beside itself, for the noise floor.
    pub again: bool,
    /// ns.
    pub ns_per_conversion: f64,
}

/// So many conversions of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Which of the estimates.
    pub line: usize,
    /// How many conversions.
    pub conversions: u64,
    /// Which turn of the step, from 0.
    pub round: u32,
}

/// The windows in their order, and what there was no time for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In the order of measuring.
    pub windows: Vec<Window>,
    /// Line, conversions, and how long one window of them would take.
    pub left_out: Vec<(usize, u64, Duration)>,
    /// How long the windows take together.
    pub total: Duration,
}

/// Plans the study: message after message, and for each step and operation all codecs in turn, there and back.
///
/// What takes longest is left out until the rest fits the budget. A step is left out of all rounds or of none.
pub fn plan(lines: &[Estimate], options: &Options) -> Result<Plan, PlanError> {
    if lines.is_empty() || options.steps.is_empty() || options.rounds == 0 {
        return Err(PlanError::NothingToMeasure);
    }
    let longest = longest_window(lines, options);
    let fits = |line: usize, conversions| window_time(&lines[line], conversions) <= longest;
    let mut plan = Plan { windows: Vec::new(), left_out: Vec::new(), total: Duration::ZERO };
    for turn in turns(lines) {
        for &conversions in &options.steps {
            let (measured, left_out): (Vec<usize>, Vec<usize>) =
                turn.iter().partition(|&&line| fits(line, conversions));
            let describe = |line: usize| (line, conversions, window_time(&lines[line], conversions));
            plan.left_out.extend(left_out.into_iter().map(describe));
            for round in 0..options.rounds {
                let window = |&line: &usize| Window { line, conversions, round };
                if round % 2 == 0 {
                    plan.windows.extend(measured.iter().map(window));
                } else {
                    plan.windows.extend(measured.iter().rev().map(window));
                }
            }
        }
    }
    plan.total = plan.windows.iter().map(|it| window_time(&lines[it.line], it.conversions)).sum();
    if plan.windows.is_empty() {
        return Err(PlanError::NothingToMeasure);
    }
    Ok(plan)
}

/// Lines that take turns: those of one message and one operation.
fn turns(lines: &[Estimate]) -> Vec<Vec<usize>> {
    let mut turns: Vec<Vec<usize>> = Vec::new();
    for (index, estimate) in lines.iter().enumerate() {
        let key = |line: &Line| (line.data.clone(), line.operation);
        match turns.iter_mut().find(|turn| key(&lines[turn[0]].line) == key(&estimate.line)) {
            Some(turn) => turn.push(index),
            None => turns.push(vec![index]),
        }
    }
    turns
}

fn window_time(line: &Estimate, conversions: u64) -> Duration {
    let conversions = conversions + WARM_UPS;
    WINDOW_OVERHEAD + Duration::from_nanos((line.ns_per_conversion * conversions as f64) as u64)
}

/// How long a window may take at most, so that all that take no longer fit the budget together. The shortest step of
/// every line is measured in any case.
fn longest_window(lines: &[Estimate], options: &Options) -> Duration {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Operation;

    fn lines(ns: &[(&str, &str, f64)]) -> Vec<Estimate> {
        let line = |&(data, codec, ns_per_conversion): &(&str, &str, f64)| Estimate {
            line: Line { data: data.to_owned(), codec: codec.to_owned(), operation: Operation::Encode },
            again: false,
            ns_per_conversion,
        };
        ns.iter().map(line).collect()
    }

    fn options(steps: &[u64], rounds: u32, budget: Duration) -> Options {
        Options { steps: steps.to_vec(), rounds, budget }
    }

    #[test]
    fn codecs_of_a_message_take_turns_there_and_back() {
        let lines = lines(&[("a", "x", 10.0), ("a", "y", 10.0), ("b", "x", 10.0)]);
        let plan = plan(&lines, &options(&[10], 3, Duration::from_secs(1))).unwrap();
        let order: Vec<(usize, u32)> = plan.windows.iter().map(|it| (it.line, it.round)).collect();
        assert_eq!(order, [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2), (2, 0), (2, 1), (2, 2)]);
        assert_eq!(plan.left_out, []);
    }

    #[test]
    fn what_takes_longest_is_left_out_until_the_rest_fits() {
        // 10⁶ of x take 0.1 s, of y 1 s, of z 10 s; in two rounds.
        let lines = lines(&[("a", "x", 100.0), ("a", "y", 1000.0), ("a", "z", 10_000.0)]);
        let check = |budget_ms: u64, expected: &[(usize, u64)]| {
            let budget = Duration::from_millis(budget_ms);
            let plan = plan(&lines, &options(&[1000, 1_000_000], 2, budget)).unwrap();
            let left_out: Vec<(usize, u64)> = plan.left_out.iter().map(|it| (it.0, it.1)).collect();
            assert_eq!(left_out, expected, "{budget_ms} ms");
            assert!(plan.total <= budget || plan.windows.iter().all(|it| it.conversions == 1000));
        };
        check(23_000, &[]);
        check(3_000, &[(2, 1_000_000)]);
        check(500, &[(1, 1_000_000), (2, 1_000_000)]);
        // The first step stays, however little time there is.
        check(1, &[(0, 1_000_000), (1, 1_000_000), (2, 1_000_000)]);
    }

    #[test]
    fn nothing_is_no_study() {
        assert_eq!(plan(&[], &Options::quick()), Err(PlanError::NothingToMeasure));
        let no_steps = options(&[], 1, Duration::from_secs(1));
        assert_eq!(plan(&lines(&[("a", "x", 1.0)]), &no_steps), Err(PlanError::NothingToMeasure));
        assert_eq!(Options::quick().steps.last(), Some(&1_000_000));
        assert_eq!(Options::whole().steps.last(), Some(&10_000_000));
    }
}
