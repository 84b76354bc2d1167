//! An earlier run beside which one is put.

use crate::run::{LoadRun, RunNote};
use crate::share::Share;

impl LoadRun {
    /// What a reader must know who puts this run beside an earlier one: under which other conditions that was made.
    /// Of methods and loops nothing is said: a [`Gate`](crate::Gate) against another one there is none.
    pub fn beside(&self, baseline: &Self) -> Option<RunNote> {
        let mut others = self.other_conditions(baseline);
        match (&baseline.machine, &self.machine) {
            (Some(before), Some(now)) => others.extend(
                before
                    .differences(now)
                    .into_iter()
                    .map(|(what, before, now)| format!("the machine's {what} was {before}, and not {now}")),
            ),
            (None, Some(_)) => others.push("it does not say on which machine".to_owned()),
            (_, None) => {}
        }
        if others.is_empty() {
            return None;
        }
        let text = format!(
            "the baseline was made under other conditions, which are in what differs: {}",
            others.join("; ")
        );
        Some(RunNote { text, invalidates: false })
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
            .map(|((what, before), (_, now))| format!("{what} was {}, and not {}", shown(before), shown(now)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_that_differ_are_named() {
        let check = |change: fn(&mut LoadRun), expected: &str| {
            let (mut baseline, now) = (LoadRun::of_tests(), LoadRun::of_tests());
            change(&mut baseline);
            let note = now.beside(&baseline).map(|note| (note.text, note.invalidates));
            let said = "the baseline was made under other conditions, which are in what differs: ";
            let expected = (!expected.is_empty()).then(|| (format!("{said}{expected}"), false));
            assert_eq!(note, expected);
        };
        check(|_| (), "");
        check(|run| (run.ok, run.duration_ns) = (7, 8), "");
        check(|run| run.schedule = Some("50".to_owned()), "the schedule was 50, and not 100");
        check(
            |run| run.spacing = Some("poisson".to_owned()),
            "the spacing of starts was poisson, and not constant",
        );
        check(
            |run| (run.in_flight, run.connections) = (8, 2),
            "the number of calls in flight was 8, and not 1000; the number of connections was 2, and not 1",
        );
        check(|run| run.share = Share::new(0, 2).ok(), "the part of the load was 0/2, and not none");
        check(|run| run.machine = None, "it does not say on which machine");
        check(
            |run| run.machine.iter_mut().for_each(|machine| machine.cpu = "Abacus".to_owned()),
            "the machine's processor was Abacus, and not Model 7",
        );
    }
}
