//! End times of the phases of a call.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use thalweg::channel::ConnectStep;
use thalweg_measure::figures::time;

/// Phases of a call. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    began: Instant,
    steps: Arc<Mutex<Vec<Step>>>,
}

/// The end of a phase.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// `resolve`, `connect`, `tls`, `settings`, `reflection`, `send`, `head`, `first message`, `last message`, `end`.
    pub(super) name: &'static str,
    /// Time since the command started to connect.
    pub(super) at: Duration,
    /// Additional information.
    pub(super) note: String,
}

impl Timeline {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), steps: Arc::default() }
    }

    /// Returns the time since the start.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn ended(&self, name: &'static str, note: impl Into<String>) {
        let step = Step { name, at: self.now(), note: note.into() };
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    }

    /// Records a step of connecting.
    pub(super) fn connecting(&self, step: ConnectStep) {
        match step {
            ConnectStep::Resolved => self.ended("resolve", ""),
            ConnectStep::Connected { peer } => self.ended("connect", peer),
            ConnectStep::Secured => self.ended("tls", ""),
            ConnectStep::Ready => self.ended("settings", "received the server's HTTP/2 SETTINGS"),
            _ => {}
        }
    }

    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner).clone();
        steps.sort_by_key(|step| step.at);
        steps
    }

    /// Returns a line per phase with its duration and end time.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut before = Duration::ZERO;
        let line = |step: Step| {
            let took = step.at.saturating_sub(before);
            before = step.at;
            let (took, at) = (time(took.as_nanos() as f64), time(step.at.as_nanos() as f64));
            format!("{:<14}{took:>10}  at {at:>9}  {}", step.name, step.note).trim_end().to_owned()
        };
        self.steps().into_iter().map(line).collect()
    }
}
