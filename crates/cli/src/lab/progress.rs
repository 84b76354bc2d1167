//! Progress of a study.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use thalweg_lab::study::{Observe, Plan, Window, WindowOutcome};
use thalweg_measure::figures::span;
use thalweg_protobuf::printable;

use crate::terminal;

/// Progress on stderr: a bar on a terminal, otherwise a line per group of windows.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    total: usize,
    done: usize,
    group: String,
}

impl Progress {
    /// Prints the number of windows and their total time, followed by `more`.
    pub(super) fn new<W: Window>(plan: &Plan<W>, more: &str) -> Self {
        let (total, left) = (plan.windows.len(), plan.total());
        let about = format!("{total} windows, about {}{more}", span(left));
        let bar = if terminal::stderr_is_terminal() {
            let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {prefix} left  {wide_msg}");
            bar.set_style(style.expect("the template is a constant"));
            bar.println(about);
            Some(bar)
        } else {
            terminal::say(&about);
            None
        };
        Self { bar, total, done: 0, group: String::new() }
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl<W: Window, F> Observe<W, F> for Progress {
    fn window_started(&mut self, window: &W, left: Duration) {
        match &self.bar {
            Some(bar) => {
                bar.set_prefix(span(left));
                bar.set_message(printable::line(&window.to_string()).into_owned());
            }
            None if !window.is_reference() => {
                let group = window.group();
                if group != self.group {
                    let left = span(left);
                    terminal::say(&format!("[{}/{}] {group}; {left} left", self.done, self.total));
                    self.group = group;
                }
            }
            None => {}
        }
    }

    fn window_ended(&mut self, window: &W, outcome: &WindowOutcome<F>) {
        self.done += 1;
        let failed = |reason| format!("[{}/{}] {window}: failed: {reason}", self.done, self.total);
        match (&self.bar, outcome) {
            (Some(bar), outcome) => {
                bar.inc(1);
                if let Err(reason) = outcome {
                    bar.println(printable::line(&failed(reason)));
                }
            }
            (None, Err(reason)) => terminal::say(&failed(reason)),
            (None, Ok(_)) => {}
        }
    }
}
