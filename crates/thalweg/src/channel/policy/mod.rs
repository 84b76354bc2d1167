//! How many lanes a channel should have: a pure function of samples and time.
//!
//! Whoever runs the channel takes [`Samples`] every [`PolicyConfig::tick_ms`], gives them to [`Policy::decide`], and does
//! what the [`Decision`] says. The same samples and times give the same decisions.

mod config;
mod reason;
mod sample;

use std::time::Duration;

pub(crate) use config::PolicyConfig;
pub(crate) use reason::Reason;
pub(crate) use sample::{LaneSample, LaneState, Samples};

/// Says when to open a lane and when to close one.
#[derive(Debug)]
pub(crate) struct Policy {
    config: PolicyConfig,
}

/// What to do about the lanes now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    Keep,
    /// Connect this many lanes more.
    Open {
        count: usize,
        reason: Reason,
    },
    /// Let these take no more calls, and close each when its last call has ended.
    Close {
        lanes: Vec<u64>,
        reason: Reason,
    },
}

impl Policy {
    pub(crate) fn new(config: PolicyConfig) -> Self {
        Self { config }
    }

    /// What to do, from what the lanes did since the last call of this and the time since the channel began.
    pub(crate) fn decide(&mut self, _samples: &Samples, _now: Duration) -> Decision {
        let _ = &self.config;
        Decision::Keep
    }
}
