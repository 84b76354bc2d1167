//! Lines on stderr while a run goes on, for whoever sits before it.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, SystemTime};

use thalweg_lab::figures::time;
use thalweg_load::{Interval, Pace, Plan, Running};

use super::watching::Watcher;

/// Tells who sits before it that the run begins later.
pub(super) fn wait(plan: &Plan) {
    let ahead = plan.start_at.and_then(|at| at.duration_since(SystemTime::now()).ok());
    if let Some(ahead) = ahead.filter(|_| io::stderr().is_terminal()) {
        let _ = writeln!(io::stderr(), "measuring begins in {:.1} s", ahead.as_secs_f64());
    }
}

/// A line for each interval.
pub(super) struct Progress {
    is_open: bool,
}

impl Progress {
    /// Where stderr is a terminal.
    pub(super) fn on_terminal(plan: &Plan) -> Option<Box<dyn Watcher>> {
        let is_open = matches!(plan.pace, Pace::Open { .. });
        io::stderr().is_terminal().then(|| Box::new(Self { is_open }) as Box<dyn Watcher>)
    }
}

impl Watcher for Progress {
    fn begins(&mut self, _: &Running) {}

    fn interval(&mut self, interval: &Interval, _: &Running) {
        let at = Duration::from_nanos(interval.at_ns).as_secs();
        let scheduled = if self.is_open { format!(" of {:.0}", interval.scheduled) } else { String::new() };
        let latency = interval.latency_ns.map_or(String::new(), |latency| {
            format!(
                "  p50 {:>8}  p99 {:>8}  max {:>8}",
                time(latency.p50 as f64),
                time(latency.p99 as f64),
                time(latency.max as f64)
            )
        });
        let failed =
            if interval.failed > 0 { format!("  {} failed", interval.failed) } else { String::new() };
        // Who does not read stderr any more does not miss it.
        let _ = writeln!(
            io::stderr(),
            "{at:>5} s  {:>9} ok{scheduled}{latency}  {} in flight{failed}",
            interval.ok,
            interval.in_flight
        );
    }
}
