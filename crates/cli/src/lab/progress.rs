//! How a study goes on, on stderr.

use std::fmt;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use thalweg_lab::study::{Observe, Plan, Window, WindowOutcome};
use thalweg_measure::figures::span;
use thalweg_protobuf::printable;

use crate::terminal;

/// A bar on a terminal, a line for each window elsewhere, or for each group of them; both on stderr.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    total: usize,
    done: usize,
    left: Duration,
    /// Windows are too many to have a line each: groups do.
    compares: bool,
    group: String,
}

impl Progress {
    /// Says how many windows there are and how long they take, and `more` behind that.
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
        Self { bar, total, done: 0, left, compares: plan.is_compared, group: String::new() }
    }

    /// Takes the bar away, so that what is printed next stands on a clean line.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl<W: Window, F: fmt::Display> Observe<W, F> for Progress {
    fn begins(&mut self, window: &W, left: Duration) {
        self.left = left;
        match &self.bar {
            Some(bar) => {
                bar.set_prefix(span(left));
                bar.set_message(printable::line(&window.to_string()).into_owned());
            }
            None if self.compares && !window.is_beside() => {
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

    fn ended(&mut self, window: &W, outcome: &WindowOutcome<F>) {
        self.done += 1;
        let line = || {
            let summary = match outcome {
                Ok(found) => found.to_string(),
                Err(reason) => format!("failed: {reason}"),
            };
            format!("[{}/{}] {window}: {summary}", self.done, self.total)
        };
        match &self.bar {
            Some(bar) => {
                bar.inc(1);
                if outcome.is_err() {
                    bar.println(printable::line(&line()));
                }
            }
            None if outcome.is_err() || !self.compares => {
                let left = span(self.left.saturating_sub(window.total()));
                terminal::say(&format!("{}; {left} left", line()));
            }
            None => {}
        }
    }
}
