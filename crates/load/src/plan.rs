//! What a run is to do.

use std::time::Duration;

use crate::arrivals::Spacing;
use crate::schedule::Schedule;

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
    /// Driven first, and not counted.
    pub warm_up: Duration,
    /// Intervals of this length are told apart; doubled when there are too many.
    pub interval: Duration,
}

/// A plan that makes no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nothing would be in flight.
    #[error("at least one call in flight is needed")]
    NothingInFlight,
    /// It would be over at once.
    #[error("a run that lasts no time measures nothing")]
    NoTime,
    /// No flow is ever chosen, or one has no step.
    #[error("a scenario needs a flow with a weight above 0, and each flow a step")]
    NothingToCall,
    /// Intervals cannot be told apart.
    #[error("an interval lasts at least 10 ms")]
    ShortInterval,
}

impl Plan {
    /// Starts that the schedule has between these times, ns since measuring began; none in a closed loop.
    pub(crate) fn scheduled_between(&self, from_ns: u64, until_ns: u64) -> f64 {
        match &self.pace {
            Pace::Closed { .. } => 0.0,
            Pace::Open { schedule, .. } => {
                schedule.begun_after(until_ns as f64 / 1e9) - schedule.begun_after(from_ns as f64 / 1e9)
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), PlanError> {
        if self.in_flight == 0 {
            return Err(PlanError::NothingInFlight);
        }
        if matches!(self.stop, Stop::After(Duration::ZERO) | Stop::Calls(0)) {
            return Err(PlanError::NoTime);
        }
        if self.interval < Duration::from_millis(10) {
            return Err(PlanError::ShortInterval);
        }
        Ok(())
    }
}
