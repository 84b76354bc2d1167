//! Progress lines on stderr.

use std::time::Duration;

use thalweg_load::{Interval, Pace, Plan};
use thalweg_measure::figures::time;

use super::any_arguments::AnyArgs;
use super::start_at::waits;
use super::watching::{Told, Watcher};
use crate::terminal;

/// Default interval of lines in a log.
const IN_A_LOG: Duration = Duration::from_secs(10);

/// Prints a line for every `of_a_line` intervals.
pub(super) struct Progress {
    is_open: bool,
    /// Intervals per line.
    of_a_line: u64,
    /// Sum of intervals for the next line, and their number.
    pending: Option<Interval>,
    pending_parts: u64,
}

impl Progress {
    /// Returns a watcher, or `None` with `--quiet`. Prints an agreed start time.
    pub(super) fn begin(any: &AnyArgs, plan: &Plan) -> Option<Box<dyn Watcher>> {
        if any.quiet {
            return None;
        }
        if let Some(text) = plan.start_at.and_then(waits) {
            terminal::say(&text);
        }
        let is_log = any.interval.is_none() && !terminal::stderr_is_terminal();
        let of_a_line = if is_log { IN_A_LOG.div_duration_f64(plan.interval).ceil() as u64 } else { 1 };
        let is_open = matches!(plan.pace, Pace::Open { .. });
        Some(Box::new(Self { is_open, of_a_line, pending: None, pending_parts: 0 }))
    }

    /// Adds an interval. Returns the sum if a line is complete.
    fn gathered(&mut self, interval: &Interval) -> Option<Interval> {
        match &mut self.pending {
            Some(pending) => pending.add_next(interval),
            None => self.pending = Some(interval.clone()),
        }
        self.pending_parts += 1;
        if self.pending_parts < self.of_a_line {
            return None;
        }
        self.pending_parts = 0;
        self.pending.take()
    }
}

impl Watcher for Progress {
    fn told(&mut self, told: &Told) {
        let interval = match told {
            // A search runs several times; each starts with a new line.
            Told::Begins(_) => {
                (self.pending, self.pending_parts) = (None, 0);
                return;
            }
            Told::Interval(interval, _) => interval,
        };
        let Some(interval) = self.gathered(interval) else { return };
        let at = Duration::from_nanos(interval.at_ns).as_secs();
        let scheduled = match interval.flows {
            _ if !self.is_open => String::new(),
            Some(flows) => format!(", {} of {:.0} flows", flows.ok, interval.scheduled),
            None => format!(" of {:.0}", interval.scheduled),
        };
        let latency = interval.latency_ns.map_or(String::new(), |latency| {
            format!(
                "  p50 {:>8}  p99 {:>8}  max {:>8}",
                time(latency.p50 as f64),
                time(latency.p99 as f64),
                time(latency.max as f64)
            )
        });
        let (sent, received) = (interval.messages_sent, interval.messages_received);
        // For other calls the number of messages is known.
        let messages = if sent.max(received) > interval.ok + interval.failed {
            format!("  {sent} messages sent, {received} received")
        } else {
            String::new()
        };
        let failed =
            if interval.failed > 0 { format!("  {} failed", interval.failed) } else { String::new() };
        terminal::say(&format!(
            "{at:>5} s  {:>9} ok{scheduled}{latency}{messages}  {} in flight{failed}",
            interval.ok, interval.in_flight
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_log_has_several_intervals() {
        let interval = |at_s: u64| -> Interval {
            serde_json::from_value(serde_json::json!({
                "at_ns": at_s * 1_000_000_000, "scheduled": 10.0, "ok": 7, "failed": 2, "late": 0, "in_flight": at_s,
                "latency_ns": null, "bytes_sent": 0, "bytes_received": 0
            }))
            .unwrap()
        };
        let mut progress = Progress { is_open: true, of_a_line: 3, pending: None, pending_parts: 0 };
        let mut gathered = |at_s: u64| {
            let line = progress.gathered(&interval(at_s));
            line.map(|line| (line.at_ns / 1_000_000_000, line.ok, line.failed, line.in_flight))
        };
        assert_eq!([0, 1, 2].map(&mut gathered), [None, None, Some((0, 21, 6, 2))]);
        assert_eq!([3, 4, 5].map(&mut gathered), [None, None, Some((3, 21, 6, 5))]);
    }
}
