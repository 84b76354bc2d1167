//! What a run is to do.

use std::time::{Duration, Instant, SystemTime};

use thalweg_measure::wording::counted;

use crate::arrivals::Spacing;
use crate::label::Label;
use crate::schedule::Schedule;
use crate::share::Share;

/// How calls are begun.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// Each worker begins a call when its last has ended.
    Closed {
        /// How many of the workers have calls, over the measured time; all of them where there is none.
        workers: Option<Schedule>,
    },
    /// At the times of a schedule.
    Open {
        /// The rate over time.
        schedule: Schedule,
        /// How starts lie about it.
        spacing: Spacing,
        /// From which starts are drawn.
        seed: u64,
    },
}

/// What ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A time, the warm-up not counted.
    After(Duration),
    /// So many starts, those of the warm-up not counted.
    Calls(u64),
    /// So many messages of streams, those of the warm-up not counted: requests, and responses of streams that only
    /// receive. Of a closed loop.
    Messages(u64),
}

/// What becomes of calls that are under way when the time is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnderWay {
    /// They are waited for. A closed loop by time does not count them, since as many were under way when measuring
    /// began; all others do.
    #[default]
    ByLoop,
    /// They are waited for and counted; in a closed loop the measured time lasts until the last of them has ended.
    Wait,
    /// They are cancelled, and count as failed (CANCELLED).
    Close,
    /// They are cancelled, and not counted.
    Ignore,
}

impl UnderWay {
    /// Whether calls are cancelled.
    fn is_cut(self) -> bool {
        matches!(self, Self::Close | Self::Ignore)
    }
}

/// What a run is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How calls are begun.
    pub pace: Pace,
    /// Calls in flight, at the most in an open loop.
    pub in_flight: u32,
    /// What ends it.
    pub stop: Stop,
    /// With [`Stop::Calls`]: it ends after this time even if fewer calls have begun.
    pub max_duration: Option<Duration>,
    /// What becomes of calls under way when a time ends it.
    pub under_way: UnderWay,
    /// A call, or the next message of a stream, that takes longer has failed, and is cancelled. The server is not told;
    /// `None`: there is the deadline of calls only.
    pub patience: Option<Duration>,
    /// Driven first, and not counted.
    pub warm_up: Duration,
    /// Intervals of this length are told apart; doubled when there are too many. Of [`NO_INTERVALS`] there are none.
    pub interval: Duration,
    /// Which part of it this process makes; `None`: all. Calls and the rate are those of the whole, calls in flight are
    /// the part's own.
    pub share: Option<Share>,
    /// When measuring begins, agreed with other parts; `None`: when the warm-up has ended.
    pub start_at: Option<SystemTime>,
    /// What the result calls it.
    pub label: Label,
}

/// A plan that makes no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nothing would be in flight.
    #[error("-c must be at least 1")]
    NothingInFlight,
    /// It would be over at once.
    #[error("the duration and the number of calls must be greater than 0")]
    NoTime,
    /// No flow is ever chosen, or one has no step.
    #[error("a scenario needs a flow with a weight above 0, and each flow a step")]
    NothingToCall,
    /// A schedule has starts, and no messages.
    #[error("a number of messages ends closed loops only")]
    MessagesBySchedule,
    /// Intervals cannot be told apart.
    #[error("--interval must be at least 10ms")]
    ShortInterval,
    /// Another part has begun already.
    #[error("--start-at was {} s ago; use a later time, or synchronize the clocks", seconds(*.by))]
    Late {
        /// When it was.
        by: Duration,
    },
    /// Nobody waits for so long.
    #[error("--start-at is {} s ahead, more than a day; is it in seconds since 1970?", .by.as_secs())]
    Ahead {
        /// When it will be.
        by: Duration,
    },
    /// There are more parts than calls.
    #[error("part {share} gets no calls; -n {calls} allows at most {}", counted(*.calls, "part"))]
    NoCalls {
        /// Which part.
        share: Share,
        /// Of the whole.
        calls: u64,
    },
}

fn seconds(duration: Duration) -> String {
    format!("{:.3}", duration.as_secs_f64())
}

/// The length of intervals where nobody is told of them: ten years.
pub const NO_INTERVALS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

impl Plan {
    /// Returns whether somebody is told of intervals.
    pub(crate) fn has_intervals(&self) -> bool {
        self.interval < NO_INTERVALS
    }

    /// What ends this part of it: of calls its own number.
    pub fn own_stop(&self) -> Stop {
        match (self.stop, self.share) {
            (Stop::Calls(calls), Some(share)) => Stop::Calls(share.of_calls(calls)),
            (Stop::Messages(messages), Some(share)) => Stop::Messages(share.of_calls(messages)),
            (stop, _) => stop,
        }
    }

    /// Starts that the schedule has between these times, ns since measuring began; none in a closed loop.
    pub(crate) fn scheduled_between(&self, from_ns: u64, until_ns: u64) -> f64 {
        match &self.pace {
            Pace::Closed { .. } => 0.0,
            Pace::Open { schedule, .. } => {
                let most = match self.stop {
                    Stop::Calls(calls) => calls as f64,
                    Stop::After(_) | Stop::Messages(_) => f64::INFINITY,
                };
                let begun = |ns: u64| schedule.begun_after(ns as f64 / 1e9).min(most);
                let all = begun(until_ns) - begun(from_ns);
                all / self.share.map_or(1.0, |share| f64::from(share.of()))
            }
        }
    }

    /// When no call begins any more, ns since the warm-up began; `u64::MAX` where no time ends it.
    pub(crate) fn until_ns(&self) -> u64 {
        let time = match (self.stop, &self.pace) {
            (Stop::After(duration), _) => Some(duration),
            // There may be none behind a schedule that goes down; their number is rounded.
            (Stop::Calls(_), Pace::Closed { workers: Some(workers) }) => {
                [self.max_duration, workers.over_after(0.5)].into_iter().flatten().min()
            }
            (Stop::Calls(_) | Stop::Messages(_), _) => self.max_duration,
        };
        time.map_or(u64::MAX, |time| (self.warm_up.as_nanos() as u64).saturating_add(time.as_nanos() as u64))
    }

    /// When calls under way are cancelled, of a run whose clock began at `base`.
    pub(crate) fn cut_at(&self, base: Instant) -> Option<Instant> {
        let until_ns = self.until_ns();
        (self.under_way.is_cut() && until_ns < u64::MAX).then(|| base + Duration::from_nanos(until_ns))
    }

    /// Until when calls count in a closed loop, ns since the warm-up began.
    ///
    /// By time what ends within it counts, whenever it began: what is under way at the end was under way at the
    /// beginning, too. By number all that has begun counts.
    pub(crate) fn counted_until_ns(&self) -> u64 {
        match (self.under_way, self.stop) {
            (UnderWay::ByLoop, Stop::After(_)) | (UnderWay::Ignore, _) => self.until_ns(),
            (UnderWay::ByLoop, Stop::Calls(_) | Stop::Messages(_))
            | (UnderWay::Wait | UnderWay::Close, _) => u64::MAX,
        }
    }

    /// Where the measured time ends at the latest.
    pub(crate) fn measured_until_ns(&self) -> u64 {
        match (&self.pace, self.stop) {
            (Pace::Closed { .. }, _) if self.under_way != UnderWay::Close => self.counted_until_ns(),
            (Pace::Open { schedule, .. }, Stop::Calls(calls)) => {
                // When one more would begin; of bursts, when they are over.
                let end = schedule.start_of(calls as f64).map(Duration::from_secs_f64);
                let end = end.or_else(|| schedule.over_after(0.0));
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
