//! The main calls must not cost more instructions and allocations than recorded in `xtask/costs.json`.

use crate::costs::{self, Cost, Record, Toolchain};
use crate::failure::Result;
use crate::log;

/// Counts of one program repeat within a few instructions per million. The margin allows for changed inlining and code
/// layout after unrelated changes in a crate.
const MARGIN: f64 = 0.03;
/// For another compiler or libc than recorded: still enough to find an extra copy or lock.
const MARGIN_OTHER_TOOLCHAIN: f64 = 0.10;
/// Allocations per call. Buffers that grow once and occasional cleanup of tables cause fractions.
const MARGIN_ALLOCATIONS: f64 = 0.05;

const HOW_TO_RECORD: &str = "`cargo xtask costs --record`, and commit xtask/costs.json";

pub(super) fn check() -> Result<String> {
    let record = Record::read()?;
    let here = Toolchain::here()?;
    if here.processor != record.toolchain.processor {
        let (recorded, here) = (record.toolchain.processor, here.processor);
        return Err(missing!("recorded counts for {here} CPUs; they are for {recorded}"));
    }
    let other_toolchain = differences(&record.toolchain, &here);
    let margin = if other_toolchain.is_empty() { MARGIN } else { MARGIN_OTHER_TOOLCHAIN };
    let found = costs::measure()?;
    let Comparison { regressions, improvements } = compare(&record.costs, &found, margin);
    for line in &regressions {
        println!("COST  {line}");
        log::line(line)?;
    }
    for line in &improvements {
        println!("hint  {line}");
    }
    if !improvements.is_empty() {
        println!("hint  to keep the improvement: {HOW_TO_RECORD}");
    }
    ensure!(
        regressions.is_empty(),
        "{} of {} costs differ from the committed ones; find the cause (`cargo xtask costs` counts again), or if it \
         is worth it: {HOW_TO_RECORD}, with the reason",
        regressions.len(),
        found.len()
    );
    Ok(format!("{} costs within {:.0} %{other_toolchain}", found.len(), 100.0 * margin))
}

/// Describes the recorded toolchain if it is not the current one.
fn differences(recorded: &Toolchain, here: &Toolchain) -> String {
    if recorded == here {
        return String::new();
    }
    let written = |toolchain: &Toolchain| format!("{}, {}", toolchain.rustc, toolchain.libc);
    format!(" (recorded with {}; here: {})", written(recorded), written(here))
}

/// Changed costs, a line for each.
#[derive(Debug, Default, PartialEq)]
struct Comparison {
    regressions: Vec<String>,
    improvements: Vec<String>,
}

fn compare(committed: &[Cost], found: &[Cost], margin: f64) -> Comparison {
    let mut comparison = Comparison::default();
    for found in found {
        let same = |cost: &&Cost| cost.case == found.case && cost.side == found.side;
        let Some(committed) = committed.iter().find(same) else {
            comparison.regressions.push(format!("{}, {}: not committed", found.case, found.side));
            continue;
        };
        let (before, after) = (committed.instructions, found.instructions);
        comparison.take(found, "instructions", before, after, margin * before);
        let (before, after) = (committed.allocations, found.allocations);
        comparison.take(found, "allocations", before, after, MARGIN_ALLOCATIONS);
    }
    for committed in committed {
        if !found.iter().any(|found| found.case == committed.case && found.side == committed.side) {
            let Cost { case, side, .. } = committed;
            comparison.regressions.push(format!("{case}, {side}: committed but no longer counted"));
        }
    }
    comparison
}

impl Comparison {
    fn take(&mut self, of: &Cost, what: &str, committed: f64, found: f64, margin: f64) {
        let Cost { case, side, .. } = of;
        let by = 100.0 * (found - committed) / committed.max(f64::MIN_POSITIVE);
        let by = if committed == 0.0 { String::new() } else { format!(" ({by:+.1} %)") };
        let line = format!("{case}, {side}: {committed:.2} {what} committed, {found:.2} found{by}");
        if found > committed + margin {
            self.regressions.push(line);
        } else if found < committed - margin {
            self.improvements.push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(side: &str, instructions: f64, allocations: f64) -> Cost {
        Cost { case: "unary-64".to_owned(), side: side.to_owned(), instructions, allocations }
    }

    fn check(committed: &[Cost], found: &[Cost], regressions: &[&str], improvements: &[&str]) {
        let comparison = compare(committed, found, MARGIN);
        assert_eq!(comparison.regressions, regressions);
        assert_eq!(comparison.improvements, improvements);
    }

    #[test]
    fn differences_within_the_margin_are_not_reported() {
        check(&[cost("server", 4000.0, 3.0)], &[cost("server", 4100.0, 3.04)], &[], &[]);
        check(&[cost("server", 4000.0, 3.0)], &[cost("server", 3900.0, 2.96)], &[], &[]);
    }

    #[test]
    fn regression_names_call_side_and_numbers() {
        let line = "unary-64, server: 4000.00 instructions committed, 4200.00 found (+5.0 %)";
        check(&[cost("server", 4000.0, 3.0)], &[cost("server", 4200.0, 3.0)], &[line], &[]);
        let line = "unary-64, server: 3.00 allocations committed, 4.00 found (+33.3 %)";
        check(&[cost("server", 4000.0, 3.0)], &[cost("server", 4000.0, 4.0)], &[line], &[]);
        let line = "unary-64, server: 0.00 allocations committed, 1.00 found";
        check(&[cost("server", 4000.0, 0.0)], &[cost("server", 4000.0, 1.0)], &[line], &[]);
    }

    #[test]
    fn improvement_is_a_hint() {
        let line = "unary-64, server: 4000.00 instructions committed, 3000.00 found (-25.0 %)";
        check(&[cost("server", 4000.0, 3.0)], &[cost("server", 3000.0, 3.0)], &[], &[line]);
    }

    #[test]
    fn costs_missing_on_one_side_are_reported() {
        check(
            &[cost("server", 4000.0, 3.0)],
            &[cost("client", 4000.0, 3.0)],
            &["unary-64, client: not committed", "unary-64, server: committed but no longer counted"],
            &[],
        );
    }
}
