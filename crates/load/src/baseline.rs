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

    fn run() -> LoadRun {
        let cpu = serde_json::json!({"user_ns": 0.0, "system_ns": 0.0});
        let machine =
            serde_json::json!({"cpu": "Model 7", "cores": 2, "kernel": "Linux 7", "memory_bytes": 0});
        let run = serde_json::json!({
            "schema": "thalweg.load-run/1", "targets": ["a:1"], "method": "a.B/C", "kind": "unary", "loop": "open",
            "schedule": "100", "spacing": "constant", "in_flight": 1000, "connections": 1,
            "connections_established": 1, "warmup_ns": 0, "started": "", "ended": "", "duration_ns": 1, "drain_ns": 0,
            "rate_per_s": 100.0, "scheduled_per_s": 100.0, "ok": 100, "failed": 0, "errors": {}, "late": 0,
            "dropped": 0, "messages_sent": 0, "messages_received": 0, "bytes_sent": 0, "bytes_received": 0,
            "latency": null, "service": null, "wait": null, "failed_latency": null, "first_message": null,
            "reply": null, "interval_ns": 1, "intervals": [], "spun_ns": 0, "client_cpu": cpu,
            "client_cpu_per_call": null, "machine": machine, "notes": [],
        });
        serde_json::from_value(run).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn conditions_that_differ_are_named() {
        let check = |change: fn(&mut LoadRun), expected: &str| {
            let (mut baseline, now) = (run(), run());
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
