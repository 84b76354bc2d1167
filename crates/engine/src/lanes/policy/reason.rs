//! Why the policy decides as it does, with the figures.

use std::fmt;

use super::measure::Measured;

/// The signal behind a decision and its figures, as a sentence for logs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reason {
    /// Calls wait for a stream, because the peer allows no more on a connection.
    StreamLimit { waiting: usize },
    /// There are fewer lanes than the floor.
    Floor { floor: usize },
    /// There are more lanes than the cap.
    Cap { cap: usize },
    /// No call was made for a while.
    Idle,
    /// New lanes did not connect in time.
    NotConnected { lanes: usize },
    /// A signal says that the lanes limit: more are tried.
    Limited { signal: Signal, figures: Figures },
    /// Whether fewer lanes do as well is tried.
    Fewer { figures: Figures },
    /// A number between two that were tried is looked at.
    Between { figures: Figures },
    /// What was tried last is left for what was found best.
    Settled { tried: usize, tried_calls_per_s: f64, figures: Figures },
}

/// The best that is known when a decision is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) lanes: usize,
    pub(crate) calls_per_s: f64,
    pub(crate) latency_ms: f64,
}

/// What a trial has shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trial {
    /// It did better than the best until then. Fewer lanes are kept as well if they do as well, which is said when all
    /// is over.
    pub(crate) is_kept: bool,
    pub(crate) tried: Figures,
    pub(crate) best: Figures,
}

/// What says that the lanes limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Signal {
    /// Of a call's time, so much is not the network's.
    Late { share: f64 },
    /// Drivers are at work for so much of the time.
    Busy { share: f64 },
    /// Of a call's time, so much is waiting to be written.
    WriteDelay { share: f64 },
    /// So many calls found the lane's lock taken.
    Contended { share: f64 },
    /// Flow control kept data back for so much of the time.
    FlowBlocked { share: f64 },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StreamLimit { waiting } => write!(f, "{waiting} calls wait for a stream"),
            Self::Floor { floor } => write!(f, "fewer lanes than the floor of {floor}"),
            Self::Cap { cap } => write!(f, "more lanes than the cap of {cap}"),
            Self::Idle => write!(f, "no calls for a while"),
            Self::NotConnected { lanes } => write!(f, "{lanes} new lanes did not connect in time"),
            Self::Limited { signal, figures } => write!(f, "{signal}; so far {figures}"),
            Self::Fewer { figures } => write!(f, "to see whether fewer do as well as {figures}"),
            Self::Between { figures } => write!(f, "to see whether a few more do better than {figures}"),
            Self::Settled { tried, tried_calls_per_s, figures } => {
                write!(f, "{tried} lanes made {tried_calls_per_s:.0} calls/s; best is {figures}")
            }
        }
    }
}

impl Figures {
    pub(super) fn of(lanes: usize, measured: &Measured) -> Self {
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
            Self::Late { share } => (share, "of a call's time is not the network's"),
            Self::Busy { share } => (share, "of the time the drivers are at work"),
            Self::WriteDelay { share } => (share, "of a call's time is waiting to be written"),
            Self::Contended { share } => (share, "of the calls find their lane's lock taken"),
            Self::FlowBlocked { share } => (share, "of the time flow control keeps data back"),
        };
        write!(f, "{:.0} % {what}", share * 100.0)
    }
}
