//! Headline of a channels study, derived from all rows of all tables of best numbers.

use thalweg_measure::figures::ratio_text;
use thalweg_measure::wording::counted;

use super::findings::{StackVerdict, by_load, is_behind};
use super::numbers::{LoadRow, LoadsTally, MultiConnection, largest_gain};
use crate::load::CallsSettings;

/// Returns the headline; `None` if nothing was measured.
pub(crate) fn answer(verdicts: &[StackVerdict], settings: &CallsSettings) -> Option<String> {
    if settings.target.is_some() {
        return server_advice(verdicts, settings);
    }
    if verdicts.is_empty() {
        return None;
    }
    let rows = || verdicts.iter().flat_map(|verdict| &verdict.numbers.rows);
    let tally: LoadsTally = rows().collect();
    if tally.loads() == 0 {
        return Some("Several connections were not compared with one.".to_owned());
    }
    let behind = match rows().filter(|row| row.adaptive.as_ref().is_some_and(is_behind)).count() {
        0 => String::new(),
        behind => format!(" The adaptive channel falls behind a fixed number at {behind}."),
    };
    let loads = counted(tally.loads() as u64, "load");
    Some(match largest(verdicts) {
        Some(most) => {
            let mut parts = vec![format!("several connections help at {} (most: {most})", tally.gains)];
            if tally.nothing > 0 {
                parts.push(format!("make no difference at {}", tally.nothing));
            }
            if tally.cannot_tell > 0 {
                parts.push(format!("the comparison is inconclusive at {}", tally.cannot_tell));
            }
            let last = parts.pop().map(|last| if parts.is_empty() { last } else { format!("and {last}") });
            parts.extend(last);
            format!("Of {loads}, {}.{behind}", parts.join(", "))
        }
        None => format!("{}.{behind}", no_gain(tally, &loads)),
    })
}

/// Returns the text for a study in which no load shows a gain.
fn no_gain(tally: LoadsTally, loads: &str) -> String {
    match (tally.nothing, tally.cannot_tell) {
        (_, 0) => format!("Several connections make no difference at any of {loads}"),
        (0, _) => format!("The comparison of several connections with one is inconclusive at all of {loads}"),
        (nothing, open) => {
            format!(
                "Of {loads}, several connections make no difference at {nothing}, and the comparison is inconclusive \
                 at {open}"
            )
        }
    }
}

/// Returns the largest certain gain, with its load.
fn largest(verdicts: &[StackVerdict]) -> Option<String> {
    let all = verdicts.iter().filter_map(|verdict| {
        let (row, several) = largest_gain(verdict.numbers.rows.iter())?;
        Some((verdict, row, several))
    });
    let (verdict, row, several) =
        all.max_by(|(.., a), (.., b)| a.lower_bound().total_cmp(&b.lower_bound()))?;
    Some(format!(
        "{} with {} connections, {}, {}, {} in flight",
        ratio_of(several),
        several.connections,
        verdict.stack,
        verdict.conditions(),
        row.in_flight
    ))
}

/// Returns whether more connections to an external server would help, and how many; `None` if nothing was measured.
pub(crate) fn server_advice(verdicts: &[StackVerdict], settings: &CallsSettings) -> Option<String> {
    let target = settings.target.as_deref()?;
    let rows = &verdicts.first()?.numbers.rows;
    let tally: LoadsTally = rows.iter().collect();
    let loads = counted(tally.loads() as u64, "load");
    let open = match tally.cannot_tell {
        0 => String::new(),
        open => format!(" Inconclusive at {open} of {loads}; use more rounds (--rounds)."),
    };
    Some(match largest_gain(rows.iter()) {
        Some((row, several)) => format!(
            "Yes: with {} calls in flight, {} connections to {target} move {} as much as one. {}{open}",
            row.in_flight,
            several.connections,
            ratio_of(several),
            by_load(rows)
        ),
        None if tally.loads() == 0 => {
            format!("More connections to {target} were not compared with one.")
        }
        None if tally.cannot_tell == 0 => {
            format!("No: more connections to {target} make no difference at any of {loads}{}.", up_to(rows))
        }
        None if tally.nothing == 0 => {
            format!("It is unclear whether more connections to {target} would help.{open}")
        }
        None => format!(
            "More connections to {target} are not shown to help: they make no difference at {} of {loads}.{open}",
            tally.nothing
        ),
    })
}

fn ratio_of(several: &MultiConnection) -> String {
    several.over_one.ratio.map(ratio_text).unwrap_or_default()
}

fn up_to(rows: &[LoadRow]) -> String {
    rows.last().map(|row| format!(", up to {} calls in flight", row.in_flight)).unwrap_or_default()
}
