//! Lines on stderr while a run goes on, for whoever sits before it.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use thalweg_lab::figures::time;
use thalweg_load::{Pace, Plan};

use super::start_at::waits;
use super::watching::{Told, Watcher};

/// A line for each interval.
pub(super) struct Progress {
    is_open: bool,
}

impl Progress {
    /// Where stderr is a terminal. What is waited for is said at once.
    pub(super) fn on_terminal(plan: &Plan) -> Option<Box<dyn Watcher>> {
        if !io::stderr().is_terminal() {
            return None;
        }
        if let Some(text) = plan.start_at.and_then(waits) {
            // Who does not read stderr any more does not miss it.
            let _ = writeln!(io::stderr(), "{text}");
        }
        Some(Box::new(Self { is_open: matches!(plan.pace, Pace::Open { .. }) }))
    }
}

impl Watcher for Progress {
    fn told(&mut self, told: &Told) {
        let Told::Interval(interval, _) = told else { return };
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
        // Of a call that is no stream it is known.
        let messages = if sent.max(received) > interval.ok + interval.failed {
            format!("  {sent} messages sent, {received} received")
        } else {
            String::new()
        };
        let failed =
            if interval.failed > 0 { format!("  {} failed", interval.failed) } else { String::new() };
        // Who does not read stderr any more does not miss it.
        let _ = writeln!(
            io::stderr(),
            "{at:>5} s  {:>9} ok{scheduled}{latency}{messages}  {} in flight{failed}",
            interval.ok,
            interval.in_flight
        );
    }
}
