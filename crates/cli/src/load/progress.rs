//! Progress lines on stderr.

use std::time::Duration;

use thalweg_load::{Interval, Pace, Plan};
use thalweg_measure::figures::time;

use super::any_arguments::AnyArgs;
use super::start_at::waits;
use super::watching::{RunEvent, Watcher};
use crate::terminal;

/// Default interval of lines in a log.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Prints a line for every `intervals_per_line` intervals.
pub(super) struct Progress {
    is_open: bool,
    /// Intervals per line.
    intervals_per_line: u64,
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
        let intervals_per_line =
            if is_log { LOG_INTERVAL.div_duration_f64(plan.interval).ceil() as u64 } else { 1 };
        let is_open = matches!(plan.pace, Pace::Open { .. });
        Some(Box::new(Self { is_open, intervals_per_line, pending: None, pending_parts: 0 }))
    }

    /// Adds an interval. Returns the sum if a line is complete.
    fn add(&mut self, interval: &Interval) -> Option<Interval> {
        match &mut self.pending {
            Some(pending) => pending.append(interval),
            None => self.pending = Some(interval.clone()),
        }
        self.pending_parts += 1;
        if self.pending_parts < self.intervals_per_line {
            return None;
        }
        self.pending_parts = 0;
        self.pending.take()
    }
}

impl Watcher for Progress {
    fn on_event(&mut self, event: &RunEvent) {
        let interval = match event {
            // A search runs several times; each starts with a new line.
            RunEvent::Begins(_) => {
                (self.pending, self.pending_parts) = (None, 0);
                return;
            }
            RunEvent::Interval(interval, _) => interval,
        };
        let Some(interval) = self.add(interval) else { return };
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
    fn log_line_sums_several_intervals() {
        let interval = |at_s: u64| -> Interval {
            serde_json::from_value(serde_json::json!({
                "at_ns": at_s * 1_000_000_000, "scheduled": 10.0, "ok": 7, "failed": 2, "late": 0, "in_flight": at_s,
                "latency_ns": null, "bytes_sent": 0, "bytes_received": 0
            }))
            .unwrap()
        };
        let mut progress = Progress { is_open: true, intervals_per_line: 3, pending: None, pending_parts: 0 };
        let mut line = |at_s: u64| {
            let sum = progress.add(&interval(at_s));
            sum.map(|sum| (sum.at_ns / 1_000_000_000, sum.ok, sum.failed, sum.in_flight))
        };
        assert_eq!([0, 1, 2].map(&mut line), [None, None, Some((0, 21, 6, 2))]);
        assert_eq!([3, 4, 5].map(&mut line), [None, None, Some((3, 21, 6, 5))]);
    }
}
