//! Reasons for decisions, with figures.

use std::fmt;

use super::measure::Measurement;

/// The signal behind a decision, with its figures. Formats as a sentence for logs.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Calls wait for a stream, because the peer allows no more per connection.
    StreamLimit {
        /// Number of waiting calls.
        waiting: usize,
    },
    /// There are fewer lanes than the floor.
    Floor {
        /// The floor.
        floor: usize,
    },
    /// There are more lanes than the cap.
    Cap {
        /// The cap.
        cap: usize,
    },
    /// No call was made for a while.
    Idle,
    /// New lanes did not connect in time.
    NotConnected {
        /// Number of lanes.
        lanes: usize,
    },
    /// A signal shows that the lanes are the limit, so more are tried.
    Limited {
        /// The signal.
        signal: Signal,
        /// Figures of the best number so far.
        figures: Figures,
    },
    /// Fewer lanes are tried, as they may suffice.
    Fewer {
        /// Figures of the best number so far.
        figures: Figures,
    },
    /// A number between two tried ones is tried.
    Between {
        /// Figures of the best number so far.
        figures: Figures,
    },
    /// Returns from the last trial to the best number.
    Settled {
        /// Lanes of the last trial.
        tried: usize,
        /// Rate of the last trial, in calls per second.
        tried_calls_per_s: f64,
        /// Figures of the best number.
        figures: Figures,
    },
}

/// Figures of a number of lanes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Number of lanes.
    pub lanes: usize,
    /// Calls per second.
    pub calls_per_s: f64,
    /// Mean latency of a call, in milliseconds.
    pub latency_ms: f64,
}

/// Result of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Whether it did better than the previous best. Fewer lanes that do equally well are also kept, but only the end
    /// of the search shows that.
    pub is_kept: bool,
    /// The trial's figures.
    pub tried: Figures,
    /// Figures of the previous best.
    pub best: Figures,
}

/// Sign that the lanes are the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Signal {
    /// Part of a call's time is spent outside the network.
    Late {
        /// The share, 0 to 1.
        share: f64,
    },
    /// Drivers are busy for part of the time.
    Busy {
        /// The share, 0 to 1.
        share: f64,
    },
    /// Part of a call's time is spent waiting to be written.
    WriteDelay {
        /// The share, 0 to 1.
        share: f64,
    },
    /// Part of the calls found the lane's lock taken.
    Contended {
        /// The share, 0 to 1.
        share: f64,
    },
    /// Flow control held back data for part of the time.
    FlowBlocked {
        /// The share, 0 to 1.
        share: f64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StreamLimit { waiting } => write!(f, "{waiting} calls are waiting for a stream"),
            Self::Floor { floor } => write!(f, "fewer lanes than the floor of {floor}"),
            Self::Cap { cap } => write!(f, "more lanes than the cap of {cap}"),
            Self::Idle => write!(f, "no calls for a while"),
            Self::NotConnected { lanes } => write!(f, "{lanes} new lanes did not connect in time"),
            Self::Limited { signal, figures } => write!(f, "{signal}; so far {figures}"),
            Self::Fewer { figures } => write!(f, "trying whether fewer lanes match {figures}"),
            Self::Between { figures } => write!(f, "trying whether a few more lanes beat {figures}"),
            Self::Settled { tried, tried_calls_per_s, figures } => {
                write!(f, "{tried} lanes made {tried_calls_per_s:.0} calls/s; best is {figures}")
            }
        }
    }
}

impl Figures {
    pub(super) fn of(lanes: usize, measured: &Measurement) -> Self {
        Self { lanes, calls_per_s: measured.calls_per_s, latency_ms: measured.latency_s() * 1_000.0 }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let than = if self.is_kept { "better than" } else { "not better than" };
        write!(f, "{}: {than} {}", self.tried, self.best)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lanes, calls_per_s, latency_ms } = self;
        write!(f, "{lanes} with {calls_per_s:.0} calls/s of {latency_ms:.3} ms")
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (share, what) = match self {
            Self::Late { share } => (share, "of a call's time is not spent on the network"),
            Self::Busy { share } => (share, "of the time the drivers are busy"),
            Self::WriteDelay { share } => (share, "of a call's time is spent waiting to be written"),
            Self::Contended { share } => (share, "of the calls wait for their lane's lock"),
            Self::FlowBlocked { share } => (share, "of the time data is blocked by flow control"),
        };
        write!(f, "{:.0} % {what}", share * 100.0)
    }
}
