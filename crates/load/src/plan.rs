//! Plan of a run.

use std::time::{Duration, Instant, SystemTime};

use thalweg_measure::wording::counted;

use crate::arrivals::Spacing;
use crate::label::Label;
use crate::schedule::Schedule;
use crate::share::Share;

/// Start of calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// Each worker starts a call when its previous one has ended.
    Closed {
        /// Number of active workers over the measured time. `None` means all.
        workers: Option<Schedule>,
    },
    /// Calls start at the times of a schedule.
    Open {
        /// Rate over time.
        schedule: Schedule,
        /// Arrival process.
        spacing: Spacing,
        /// Seed of random arrivals.
        seed: u64,
    },
}

/// End condition of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Duration, without the warm-up.
    After(Duration),
    /// Number of starts, without those of the warm-up.
    Calls(u64),
    /// Number of stream messages, without those of the warm-up: requests, or the responses of server streams. Closed
    /// loops only.
    Messages(u64),
}

/// Handling of calls in flight when the time is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnfinishedCalls {
    /// Waits for them. They count, except in a closed loop that ends by time, where as many were in flight when
    /// measuring began.
    #[default]
    ByLoop,
    /// Waits for them and counts them. The measured time of a closed loop lasts until the last of them has ended.
    Wait,
    /// Cancels them and counts them as failed (CANCELLED).
    Close,
    /// Cancels them without counting.
    Ignore,
}

impl UnfinishedCalls {
    /// Returns whether calls are cancelled.
    fn is_cut(self) -> bool {
        matches!(self, Self::Close | Self::Ignore)
    }
}

/// Plan of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Start of calls.
    pub pace: Pace,
    /// Calls in flight; in an open loop the upper limit.
    pub in_flight: u32,
    /// End condition.
    pub stop: Stop,
    /// Time limit with [`Stop::Calls`], even if fewer calls have started.
    pub max_duration: Option<Duration>,
    /// Handling of calls in flight when a time ends the run.
    pub unfinished_calls: UnfinishedCalls,
    /// Time limit of a call, or of a stream's next message. Longer ones fail and are cancelled, but are not sent to the
    /// server as a deadline. `None`: only the calls' deadline applies.
    pub patience: Option<Duration>,
    /// Duration of the warm-up, which is not counted.
    pub warm_up: Duration,
    /// Length of intervals; doubled when there are too many. [`NO_INTERVALS`] disables them.
    pub interval: Duration,
    /// Part of the load made by this process; `None` for all. Calls and rate are those of the whole load, calls in
    /// flight are the part's own.
    pub share: Option<Share>,
    /// Start of the measured time, agreed with other parts; `None` starts it after the warm-up.
    pub start_at: Option<SystemTime>,
    /// Name and tags of the result.
    pub label: Label,
}

/// An invalid plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No calls in flight.
    #[error("-c must be at least 1")]
    NothingInFlight,
    /// The run would end at once.
    #[error("the duration and the number of calls must be greater than 0")]
    NoTime,
    /// All flows have weight 0, or one has no step.
    #[error("a scenario needs a flow with a weight above 0, and each flow a step")]
    NothingToCall,
    /// Schedules count starts, not messages.
    #[error("a number of messages can end closed loops only")]
    MessagesBySchedule,
    /// Intervals are too short.
    #[error("--interval must be at least 10ms")]
    ShortInterval,
    /// The start time has passed, so other parts have already started.
    #[error("--start-at was {} s ago; use a later time, or synchronize the clocks", seconds(*.by))]
    Late {
        /// Time since then.
        by: Duration,
    },
    /// The start time is too far ahead.
    #[error("--start-at is {} s ahead, more than a day; is it in seconds since 1970?", .by.as_secs())]
    Ahead {
        /// Time until then.
        by: Duration,
    },
    /// There are more parts than calls.
    #[error("part {share} gets no calls; -n {calls} allows at most {}", counted(*.calls, "part"))]
    NoCalls {
        /// The part without calls.
        share: Share,
        /// Number of calls of the whole load.
        calls: u64,
    },
}

fn seconds(duration: Duration) -> String {
    format!("{:.3}", duration.as_secs_f64())
}

/// Interval length that disables intervals: ten years.
pub const NO_INTERVALS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

impl Plan {
    /// Returns whether intervals are reported.
    pub(crate) fn has_intervals(&self) -> bool {
        self.interval < NO_INTERVALS
    }

    /// Returns the end condition of this part, with its own number of calls.
    pub fn own_stop(&self) -> Stop {
        match (self.stop, self.share) {
            (Stop::Calls(calls), Some(share)) => Stop::Calls(share.of_calls(calls)),
            (Stop::Messages(messages), Some(share)) => Stop::Messages(share.of_calls(messages)),
            (stop, _) => stop,
        }
    }

    /// Returns the number of starts scheduled between these times, in ns since measuring began; 0 in a closed loop.
    pub(crate) fn scheduled_between(&self, from_ns: u64, until_ns: u64) -> f64 {
        match &self.pace {
            Pace::Closed { .. } => 0.0,
            Pace::Open { schedule, .. } => {
                let most = match self.stop {
                    Stop::Calls(calls) => calls as f64,
                    Stop::After(_) | Stop::Messages(_) => f64::INFINITY,
                };
                let started = |ns: u64| schedule.starts_before(ns as f64 / 1e9).min(most);
                let all = started(until_ns) - started(from_ns);
                all / self.share.map_or(1.0, |share| f64::from(share.of()))
            }
        }
    }

    /// Returns the end of starts, in ns since the warm-up began; `u64::MAX` if no time ends the run.
    pub(crate) fn until_ns(&self) -> u64 {
        let time = match (self.stop, &self.pace) {
            (Stop::After(duration), _) => Some(duration),
            // No more calls start after a worker schedule that ends at 0; the number of workers is rounded.
            (Stop::Calls(_), Pace::Closed { workers: Some(workers) }) => {
                [self.max_duration, workers.ends_after(0.5)].into_iter().flatten().min()
            }
            (Stop::Calls(_) | Stop::Messages(_), _) => self.max_duration,
        };
        time.map_or(u64::MAX, |time| (self.warm_up.as_nanos() as u64).saturating_add(time.as_nanos() as u64))
    }

    /// Returns when calls in flight are cancelled, in a run whose clock began at `base`.
    pub(crate) fn cut_at(&self, base: Instant) -> Option<Instant> {
        let until_ns = self.until_ns();
        (self.unfinished_calls.is_cut() && until_ns < u64::MAX).then(|| base + Duration::from_nanos(until_ns))
    }

    /// Returns until when calls count in a closed loop, in ns since the warm-up began.
    ///
    /// If time ends the run, a call counts if it ends in time, whenever it started: calls in flight at the end balance
    /// those at the beginning. If a number ends the run, all started calls count.
    pub(crate) fn counted_until_ns(&self) -> u64 {
        match (self.unfinished_calls, self.stop) {
            (UnfinishedCalls::ByLoop, Stop::After(_)) | (UnfinishedCalls::Ignore, _) => self.until_ns(),
            (UnfinishedCalls::ByLoop, Stop::Calls(_) | Stop::Messages(_))
            | (UnfinishedCalls::Wait | UnfinishedCalls::Close, _) => u64::MAX,
        }
    }

    /// Returns the latest end of the measured time.
    pub(crate) fn measured_until_ns(&self) -> u64 {
        match (&self.pace, self.stop) {
            (Pace::Closed { .. }, _) if self.unfinished_calls != UnfinishedCalls::Close => {
                self.counted_until_ns()
            }
            (Pace::Open { schedule, .. }, Stop::Calls(calls)) => {
                // The time of the next start, or the end of a schedule of bursts.
                let end = schedule.start_of(calls as f64).map(Duration::from_secs_f64);
                let end = end.or_else(|| schedule.ends_after(0.0));
                let end_ns = end.map_or(u64::MAX, |end| (self.warm_up + end).as_nanos() as u64);
                end_ns.min(self.until_ns())
            }
            _ => self.until_ns(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), PlanError> {
        if self.in_flight == 0 {
            return Err(PlanError::NothingInFlight);
        }
        let is_no_time =
            matches!(self.stop, Stop::After(Duration::ZERO) | Stop::Calls(0) | Stop::Messages(0));
        if is_no_time || self.max_duration == Some(Duration::ZERO) {
            return Err(PlanError::NoTime);
        }
        if matches!((&self.pace, self.stop), (Pace::Open { .. }, Stop::Messages(_))) {
            return Err(PlanError::MessagesBySchedule);
        }
        if self.interval < Duration::from_millis(10) {
            return Err(PlanError::ShortInterval);
        }
        if let (Stop::Calls(calls), Some(share)) = (self.stop, self.share)
            && share.of_calls(calls) == 0
        {
            return Err(PlanError::NoCalls { share, calls });
        }
        Ok(())
    }
}
