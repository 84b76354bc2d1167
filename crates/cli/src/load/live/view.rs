//! State of the view.

use std::time::{Duration, Instant, SystemTime};

use thalweg_load::{Interval, LoadRun, Running, Stop};

use super::history::History;

/// Minimum time between readings of the whole run, which briefly block workers.
const REFRESH_INTERVAL_MIN: Duration = Duration::from_millis(500);

/// State of the view.
#[expect(clippy::struct_excessive_bools, reason = "independent toggles")]
pub(super) struct View {
    /// Latest reading of the run.
    pub(super) run: Option<Reading>,
    /// Agreed start of the measurement.
    pub(super) start_at: Option<SystemTime>,
    /// The run and its start.
    running: Option<(Running, Instant)>,
    /// Whether the reading is older than the last interval.
    is_stale: bool,
    refreshed_at: Option<Instant>,
    pub(super) last: Option<Interval>,
    pub(super) history: History,
    /// Whether the histogram shows the whole run.
    pub(super) shows_whole_run: bool,
    /// Whether to show in-flight and failure charts if there is no room for all charts.
    pub(super) shows_in_flight_charts: bool,
    /// Whether the screen is frozen.
    pub(super) is_paused: bool,
    /// Whether the user has asked to stop.
    pub(super) is_ending: bool,
    pub(super) notices: Vec<String>,
}

/// Reading of a run at one moment.
pub(super) struct Reading {
    pub(super) so_far: LoadRun,
    pub(super) in_flight: u64,
    pub(super) connections: u32,
    /// Limit of this part of a distributed load.
    pub(super) stop: Stop,
    pub(super) max_duration: Option<Duration>,
    pub(super) warm_up: Duration,
    pub(super) interval: Duration,
    /// Time since the warm-up started.
    pub(super) elapsed: Duration,
}

impl View {
    pub(super) fn new(start_at: Option<SystemTime>) -> Self {
        Self {
            run: None,
            start_at,
            running: None,
            is_stale: false,
            refreshed_at: None,
            last: None,
            history: History::default(),
            shows_whole_run: false,
            shows_in_flight_charts: false,
            is_paused: false,
            is_ending: false,
            notices: Vec::new(),
        }
    }

    pub(super) fn begins(&mut self, running: Running) {
        self.running = Some((running, Instant::now()));
        (self.is_stale, self.refreshed_at) = (true, None);
    }

    pub(super) fn interval(&mut self, interval: Interval, running: Running) {
        let length = running.plan().interval;
        // The last interval of a run may be shorter.
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
        self.is_stale = true;
    }

    pub(super) fn toggle_histogram(&mut self) {
        self.shows_whole_run = !self.shows_whole_run;
    }

    pub(super) fn toggle_charts(&mut self) {
        self.shows_in_flight_charts = !self.shows_in_flight_charts;
    }

    pub(super) fn pause(&mut self) {
        self.is_paused = !self.is_paused;
    }

    /// Reads the run, unless the screen is frozen.
    pub(super) fn refresh(&mut self) {
        let Some((running, began)) = &self.running else { return };
        if self.is_paused && self.run.is_some() {
            return;
        }
        let is_due =
            self.refreshed_at.is_none_or(|refreshed_at| refreshed_at.elapsed() >= REFRESH_INTERVAL_MIN);
        let kept = self.run.take().filter(|_| !(self.is_stale && is_due));
        let so_far = if let Some(reading) = kept {
            reading.so_far
        } else {
            (self.is_stale, self.refreshed_at) = (false, Some(Instant::now()));
            running.totals()
        };
        let plan = running.plan();
        self.run = Some(Reading {
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
