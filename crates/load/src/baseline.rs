//! An earlier run beside which one is put.

use crate::run::{LoadRun, RunNote};
use crate::share::Share;

impl LoadRun {
    /// What a reader must know who puts this run beside an earlier one: whether that is a whole one and valid, and
    /// under which other conditions it was made.
    /// Of methods and loops nothing is said: a [`Gate`](crate::Gate) against another one there is none.
    pub fn beside(&self, baseline: &Self) -> Vec<RunNote> {
        let mut notes = Vec::new();
        if baseline.so_far {
            notes.push("the baseline is of an unfinished run".to_owned());
        }
        let invalid = baseline.not_valid.reasons.iter();
        notes.extend(invalid.map(|reason| format!("the baseline is of a NOT VALID run: {}", reason.text)));
        notes.extend(self.conditions_beside(baseline));
        notes.into_iter().map(RunNote::new).collect()
    }

    fn conditions_beside(&self, baseline: &Self) -> Option<String> {
        let mut others = self.other_conditions(baseline);
        match (&baseline.machine, &self.machine) {
            (Some(before), Some(now)) => others.extend(
                before
                    .differences(now)
                    .into_iter()
                    .map(|(what, before, now)| format!("the machine's {what} was {before}, now {now}")),
            ),
            (None, Some(_)) => others.push("its machine is not recorded".to_owned()),
            (_, None) => {}
        }
        (!others.is_empty()).then(|| {
            format!(
                "the baseline was measured under different conditions, which may explain differences: {}",
                others.join("; ")
            )
        })
    }

    fn other_conditions(&self, baseline: &Self) -> Vec<String> {
        let of = |run: &Self| {
            [
                ("the schedule", run.schedule.clone()),
                ("the spacing of starts", run.spacing.clone()),
                ("the number of calls in flight", Some(run.in_flight.to_string())),
                ("the number of workers over time", run.workers.clone()),
                ("the number of connections", Some(run.connections.to_string())),
                ("the part of the load", run.share.as_ref().map(Share::to_string)),
            ]
        };
        let pairs = of(baseline).into_iter().zip(of(self)).filter(|((_, before), (_, now))| before != now);
        let shown = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
        pairs
            .map(|((what, before), (_, now))| format!("{what} was {}, now {}", shown(before), shown(now)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use thalweg_measure::validity::{Cause, Reason};

    use super::*;

    fn notes(change: fn(&mut LoadRun)) -> Vec<String> {
        let (mut baseline, now) = (LoadRun::of_tests(), LoadRun::of_tests());
        change(&mut baseline);
        now.beside(&baseline).into_iter().map(|note| note.text).collect()
    }

    #[test]
    fn a_baseline_that_says_little_is_said() {
        let so_far = "the baseline is of an unfinished run";
        assert_eq!(notes(|run| run.so_far = true), [so_far]);
        let change = |run: &mut LoadRun| {
            run.so_far = true;
            run.notes = vec![RunNote::new("late")];
            run.not_valid = [Reason::new(Cause::ClientLimit, "busy")].into_iter().collect();
        };
        let invalid = "the baseline is of a NOT VALID run: busy";
        assert_eq!(notes(change), [so_far, invalid]);
    }

    #[test]
    fn conditions_that_differ_are_named() {
        let check = |change: fn(&mut LoadRun), expected: &str| {
            let said =
                "the baseline was measured under different conditions, which may explain differences: ";
            let expected = if expected.is_empty() { Vec::new() } else { vec![format!("{said}{expected}")] };
            assert_eq!(notes(change), expected);
        };
        check(|_| (), "");
        check(|run| (run.ok, run.duration_ns) = (7, 8), "");
        check(|run| run.schedule = Some("50".to_owned()), "the schedule was 50, now 100");
        check(
            |run| run.spacing = Some("poisson".to_owned()),
            "the spacing of starts was poisson, now constant",
        );
        check(
            |run| (run.in_flight, run.connections) = (8, 2),
            "the number of calls in flight was 8, now 1000; the number of connections was 2, now 1",
        );
        check(|run| run.share = Share::new(0, 2).ok(), "the part of the load was 0/2, now none");
        check(|run| run.machine = None, "its machine is not recorded");
        check(
            |run| run.machine.iter_mut().for_each(|machine| machine.cpu = "Abacus".to_owned()),
            "the machine's processor was Abacus, now Model 7",
        );
    }
}
