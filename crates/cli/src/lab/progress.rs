//! How a study goes on, on stderr.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use thalweg_lab::conduct::{CameOfIt, Observe};
use thalweg_lab::figures::{count, percent, span, time};
use thalweg_lab::plan::{Purpose, Study, Window};
use thalweg_lab::results::{Outcome, SystemCallsOutcome, WireOutcome};

/// A bar on a terminal, a line for each point elsewhere; both on stderr.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    total: usize,
    done: usize,
    left: Duration,
    /// Windows are too many to have a line each: points do.
    compares: bool,
    point: String,
}

impl Progress {
    pub(super) fn new(study: &Study) -> Self {
        let (total, left) = (study.windows.len(), study.total());
        let about = format!("{total} windows, about {}", span(left));
        let bar = if io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {prefix} left  {wide_msg}");
            bar.set_style(style.expect("the template is a constant"));
            bar.println(about);
            Some(bar)
        } else {
            eprintln!("{about}");
            None
        };
        let compares = study.figures() < total;
        Self { bar, total, done: 0, left, compares, point: String::new() }
    }

    /// Takes the bar away, so that what is printed next stands on a clean line.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observe for Progress {
    fn begins(&mut self, window: &Window, left: Duration) {
        self.left = left;
        match &self.bar {
            Some(bar) => {
                bar.set_prefix(span(left));
                bar.set_message(window.to_string());
            }
            None if self.compares => {
                let point = point(window);
                // A limit stands among those whom it limits.
                if window.pair.is_some() && point != self.point {
                    eprintln!("[{}/{}] {point}; {} left", self.done, self.total, span(left));
                    self.point = point;
                }
            }
            None => {}
        }
    }

    fn ended(&mut self, window: &Window, came_of_it: CameOfIt<'_>) {
        self.done += 1;
        let (failed, summary) = summary(came_of_it);
        let line = format!("[{}/{}] {window}: {summary}", self.done, self.total);
        match &self.bar {
            Some(bar) => {
                bar.inc(1);
                if failed {
                    bar.println(line);
                }
            }
            None if failed || !self.compares => {
                eprintln!("{line}; {} left", span(self.left.saturating_sub(window.total())));
            }
            None => {}
        }
    }
}

/// What windows that take turns have in common.
fn point(window: &Window) -> String {
    match window.purpose {
        Purpose::Figures => window.point.to_string(),
        Purpose::NoiseFloor(_) => format!("{}, ours against ours", window.point),
        Purpose::SystemCalls => format!("{}, system calls", window.point),
        Purpose::Wire => format!("{}, the wire", window.point),
    }
}

/// Whether it failed, and a few words.
fn summary(came_of_it: CameOfIt<'_>) -> (bool, String) {
    match came_of_it {
        CameOfIt::Outcome(Outcome::Failed(reason))
        | CameOfIt::Wire(WireOutcome::Failed(reason))
        | CameOfIt::SystemCalls(SystemCallsOutcome::Failed(reason)) => (true, format!("failed: {reason}")),
        CameOfIt::SystemCalls(SystemCallsOutcome::Counted(counted)) => {
            let (client, server) = (counted.client_per_operation, counted.server_per_operation);
            (false, format!("{client:.2} system calls of the client, {server:.2} of the server"))
        }
        CameOfIt::Wire(WireOutcome::Watched(wire)) => {
            (false, format!("the wire was idle for {} of the time", percent(wire.all.share)))
        }
        CameOfIt::Outcome(Outcome::Measured(result)) => {
            let median = result.latency_ns.map(|latency| format!(", median {}", time(latency.p50 as f64)));
            let errors = match result.error_count() {
                0 => String::new(),
                errors => format!(", {errors} errors"),
            };
            (false, format!("{}/s{}{errors}", count(result.rate_per_s), median.unwrap_or_default()))
        }
    }
}
