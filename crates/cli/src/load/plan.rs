//! Plan of a run from the command line.

use std::fs;
use std::time::Duration;

use thalweg_dynamic::texts::BYTE_ORDER_MARK;
use thalweg_load::record::CallType;
use thalweg_load::spec::TIMEOUT_DEFAULT;
use thalweg_load::{Label, Pace, Plan, Schedule, SearchOptions, Spacing, Stop, UnfinishedCalls};

use super::any_arguments::{Conditions, DurationStop};
use super::arguments::{CallTarget, LoadArgs};
use super::defaults::{
    DURATION_DEFAULT, IN_FLIGHT_DEFAULT, IN_FLIGHT_MAX_DEFAULT, INTERVAL_DEFAULT, SEARCH_RATE_DEFAULT,
    SEARCH_WINDOW_DEFAULT, WARM_UP_DEFAULT,
};
use super::label::Tags;
use crate::failure::Failure;
use crate::load_arguments::nanoseconds;

impl LoadArgs {
    /// Returns the plan.
    pub(super) fn plan(&self) -> Result<Plan, Failure> {
        self.check_times()?;
        if self.common.announce && self.any.find_max.is_some() {
            return Err(Failure::bad_arguments("--announce cannot be used with --find-max"));
        }
        let pace = self.pace()?;
        let is_open = matches!(pace, Pace::Open { .. }) || self.any.find_max.is_some();
        let in_flight_default = match &self.any.workers {
            _ if is_open => IN_FLIGHT_MAX_DEFAULT,
            Some(workers) => workers.most().ceil() as u32,
            None if self.is_stream_type() => self.common.connections,
            None => IN_FLIGHT_DEFAULT,
        };
        let in_flight = self.common.in_flight.unwrap_or(in_flight_default.max(self.common.connections));
        if self.common.connections > in_flight {
            return Err(Failure::bad_arguments(format!(
                "-c {in_flight} is less than --connections {}",
                self.common.connections
            )));
        }
        if let Some(workers) =
            self.any.workers.as_ref().filter(|workers| workers.most() > f64::from(in_flight))
        {
            return Err(Failure::bad_arguments(format!("--workers {workers} exceeds -c {in_flight}")));
        }
        let window = if self.any.find_max.is_some() { SEARCH_WINDOW_DEFAULT } else { DURATION_DEFAULT };
        let stop = self.stop(window);
        // A schedule starts without warm-up.
        let is_warm = !is_open && matches!(stop, Stop::After(_));
        let warm_up_default = if is_warm { WARM_UP_DEFAULT } else { Duration::ZERO };
        Ok(Plan {
            pace,
            in_flight,
            stop,
            max_duration: self.any.max_duration,
            unfinished_calls: self.unfinished_calls(stop)?,
            patience: self.patience(),
            warm_up: self.common.warmup.unwrap_or(warm_up_default),
            interval: self.any.interval.unwrap_or(INTERVAL_DEFAULT),
            share: self.any.share,
            start_at: self.any.start_at,
            label: self.label()?,
        })
    }

    /// Returns the search for the highest rate, if requested.
    pub(super) fn search_options(&self, plan: &Plan) -> Option<SearchOptions> {
        let Conditions(conditions) = self.any.find_max.as_ref()?;
        let first = match &plan.pace {
            Pace::Open { schedule, .. } => schedule.rate_at(0.0),
            Pace::Closed { .. } => SEARCH_RATE_DEFAULT,
        };
        Some(SearchOptions {
            conditions: conditions.clone(),
            first,
            spacing: self.any.arrivals,
            seed: self.any.seed,
        })
    }

    fn pace(&self) -> Result<Pace, Failure> {
        let Some(text) = &self.any.rps else {
            if self.any.arrivals != Spacing::Constant && self.any.find_max.is_none() {
                let why = "--arrivals needs --rps or --find-max";
                return Err(Failure::bad_arguments(why));
            }
            return Ok(Pace::Closed { workers: self.any.workers.clone() });
        };
        let text = match text.strip_prefix('@') {
            Some(path) => fs::read_to_string(path)
                .map_err(|error| Failure::failed(format!("failed to read {path}: {error}")))?,
            None => text.clone(),
        };
        let schedule: Schedule = text
            .trim_start_matches(BYTE_ORDER_MARK)
            .parse()
            .map_err(|error| Failure::bad_arguments(format!("--rps: {error}")))?;
        Ok(Pace::Open { schedule, spacing: self.any.arrivals, seed: self.any.seed })
    }

    /// Returns the limit of calls, messages or time. Default: `window`.
    fn stop(&self, window: Duration) -> Stop {
        match self.common.total {
            Some(total) if self.has_steady_streams() => Stop::Messages(total),
            Some(total) => Stop::Calls(total),
            None => Stop::After(self.common.duration.unwrap_or(window)),
        }
    }

    /// Returns whether `--call` names a streaming call type in a plain closed loop, whose streams last until the run
    /// ends. `-n` then counts messages.
    pub(super) fn has_steady_streams(&self) -> bool {
        let any = &self.any;
        let is_steady = any.rps.is_none()
            && any.find_max.is_none()
            && any.workers.is_none()
            && any.duration_stop.is_none();
        is_steady && self.is_stream_type()
    }

    /// Returns whether `--call` names a streaming call type.
    fn is_stream_type(&self) -> bool {
        let is_scenario = self.any.scenario.is_some();
        !is_scenario && matches!(self.call, CallTarget::Benchmark(call) if call != CallType::Unary)
    }

    /// Returns the timeout of a call, or of a stream's next message, for call types, which have no deadline.
    fn patience(&self) -> Option<Duration> {
        let is_type = self.any.scenario.is_none() && matches!(self.call, CallTarget::Benchmark(_));
        let patience = Some(self.common.timeout.unwrap_or(TIMEOUT_DEFAULT));
        patience.filter(|patience| is_type && !patience.is_zero())
    }

    fn check_times(&self) -> Result<(), Failure> {
        let times = [
            ("-z", self.common.duration),
            ("--max-duration", self.any.max_duration),
            ("--warmup", self.common.warmup),
            ("--timeout", self.common.timeout),
            ("--connect-timeout", self.common.connect_timeout),
        ];
        times.into_iter().try_for_each(|(flag, time)| nanoseconds(flag, time.unwrap_or_default()).map(drop))
    }

    /// Returns the handling of calls in flight at the end.
    fn unfinished_calls(&self, stop: Stop) -> Result<UnfinishedCalls, Failure> {
        if self.any.duration_stop.is_some()
            && matches!(stop, Stop::Calls(_))
            && self.any.max_duration.is_none()
        {
            return Err(Failure::bad_arguments("--duration-stop needs a time limit: -z, or -n with -x"));
        }
        Ok(match self.any.duration_stop {
            None => UnfinishedCalls::ByLoop,
            Some(DurationStop::Close) => UnfinishedCalls::Close,
            Some(DurationStop::Wait) => UnfinishedCalls::Wait,
            Some(DurationStop::Ignore) => UnfinishedCalls::Ignore,
        })
    }

    fn label(&self) -> Result<Label, Failure> {
        let mut tags = Tags::new();
        for (key, value) in self.any.tags.iter().flatten() {
            if tags.insert(key.clone(), value.clone()).is_some_and(|other| other != *value) {
                return Err(Failure::bad_arguments(format!("--tags has `{key}` twice")));
            }
        }
        Ok(Label { name: self.any.name.clone(), tags })
    }
}
