//! What the screen shows.

use std::time::{Duration, Instant, SystemTime};

use thalweg_load::{Interval, LoadRun, Running, Stop};

use super::history::History;

/// Figures of the whole run are asked for no more often: workers wait a little meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the screen shows.
#[expect(clippy::struct_excessive_bools, reason = "four keys that each switch something, and what is behind")]
pub(super) struct View {
    /// The run as it was looked at last.
    pub(super) run: Option<Now>,
    /// The run begins to be measured then, agreed with others.
    pub(super) start_at: Option<SystemTime>,
    /// The run, and since when it goes on.
    running: Option<(Running, Instant)>,
    /// The whole run's figures are older than the last interval.
    is_behind: bool,
    looked: Option<Instant>,
    pub(super) last: Option<Interval>,
    pub(super) history: History,
    /// The histogram is of the whole run.
    pub(super) is_whole: bool,
    /// Where there is no room for all charts, those of calls in flight and of failures are there.
    pub(super) is_other: bool,
    /// The screen stays as it is.
    pub(super) is_paused: bool,
    /// The user has asked for the end.
    pub(super) is_ending: bool,
    pub(super) notices: Vec<String>,
}

/// A run at one moment.
pub(super) struct Now {
    pub(super) so_far: LoadRun,
    pub(super) in_flight: u64,
    pub(super) connections: u32,
    /// Of a part of a load its own.
    pub(super) stop: Stop,
    pub(super) max_duration: Option<Duration>,
    pub(super) warm_up: Duration,
    pub(super) interval: Duration,
    /// Since its warm-up began.
    pub(super) elapsed: Duration,
}

impl View {
    pub(super) fn new(start_at: Option<SystemTime>) -> Self {
        Self {
            run: None,
            start_at,
            running: None,
            is_behind: false,
            looked: None,
            last: None,
            history: History::default(),
            is_whole: false,
            is_other: false,
            is_paused: false,
            is_ending: false,
            notices: Vec::new(),
        }
    }

    pub(super) fn begins(&mut self, running: Running) {
        self.running = Some((running, Instant::now()));
        (self.is_behind, self.looked) = (true, None);
    }

    pub(super) fn interval(&mut self, interval: Interval, running: Running) {
        let length = running.plan().interval;
        // The last one of a run may be a shorter one.
        let end = match running.plan().stop {
            Stop::After(duration) => duration,
            Stop::Calls(_) | Stop::Messages(_) => {
                self.running.as_ref().map_or(length, |(_, began)| began.elapsed())
            }
        };
        let lasted = end.saturating_sub(Duration::from_nanos(interval.at_ns)).min(length);
        self.history.push(&interval, lasted);
        self.last = Some(interval);
        let began = self.running.as_ref().map_or_else(Instant::now, |(_, began)| *began);
        self.running = Some((running, began));
        self.is_behind = true;
    }

    pub(super) fn toggle_histogram(&mut self) {
        self.is_whole = !self.is_whole;
    }

    pub(super) fn toggle_charts(&mut self) {
        self.is_other = !self.is_other;
    }

    pub(super) fn pause(&mut self) {
        self.is_paused = !self.is_paused;
    }

    /// Looks at the run, unless it is to stay as it is.
    pub(super) fn look(&mut self) {
        let Some((running, began)) = &self.running else { return };
        if self.is_paused && self.run.is_some() {
            return;
        }
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY);
        let kept = self.run.take().filter(|_| !(self.is_behind && is_due));
        let so_far = if let Some(now) = kept {
            now.so_far
        } else {
            (self.is_behind, self.looked) = (false, Some(Instant::now()));
            running.totals()
        };
        let plan = running.plan();
        self.run = Some(Now {
            so_far,
            in_flight: running.in_flight(),
            connections: running.connections(),
            stop: plan.own_stop(),
            max_duration: plan.max_duration,
            warm_up: plan.warm_up,
            interval: plan.interval,
            elapsed: began.elapsed(),
        });
    }
}
