//! One window of calls and its purpose.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::point::Point;
use super::strategy::Strategy;
use crate::stack::{Pair, Stack};
use crate::study::{self, ExecuteError};

/// Time per window for starting the driver, connecting, and finishing calls in flight.
const WINDOW_OVERHEAD: Duration = Duration::from_millis(100);
/// Time to open a connection and make its first call, and time to finish a call in flight at the end.
const PER_CONNECTION: Duration = Duration::from_micros(150);
const PER_CALL: Duration = Duration::from_micros(8);
/// Time for a dedicated server to start, stop, and rest while its memory is read.
const OWN_SERVER: Duration = Duration::from_millis(250);
/// Extra time for counting system calls: both processes are attached and detached twice.
const COUNTING_OVERHEAD: Duration = Duration::from_millis(700);

/// One measurement of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Measured point, pair and strategy.
    pub(crate) request: WindowRequest,
    pub(crate) purpose: Purpose,
}

/// Request of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowRequest {
    pub(crate) point: Point,
    /// Client and server; `None` only for a bare socket.
    pub(crate) pair: Option<Pair>,
    /// Connection strategy of the client; `None` if the point's connection count determines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) strategy: Option<Strategy>,
    /// Round of the point, from 0.
    #[serde(default)]
    pub(crate) round: u32,
}

/// Purpose of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Figures of the study.
    Figures,
    /// Noise floor: ours against ours.
    NoiseFloor(AaSide),
    /// System calls per operation. Counting slows what it counts, so no other figures are kept.
    SystemCalls,
    /// Gaps between bytes. A hop in between watches them, so no other figures are kept.
    Wire,
}

/// Side of an A/A comparison. The two differ only in name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum AaSide {
    A,
    B,
}

impl Window {
    /// Creates a window of figures in the first round.
    pub(crate) fn of_figures(point: Point, pair: Option<Pair>, strategy: Option<Strategy>) -> Self {
        Self { request: WindowRequest { point, pair, strategy, round: 0 }, purpose: Purpose::Figures }
    }

    /// Returns the pair of a window that makes calls.
    pub(crate) fn calling_pair(&self) -> Result<Pair, ExecuteError> {
        let missing_pair = || ExecuteError::Window("missing stack of the calls".to_owned());
        self.pair.clone().ok_or_else(missing_pair)
    }

    pub(crate) fn is_bare(&self) -> bool {
        self.pair.as_ref().is_some_and(|pair| pair.client == Stack::bare())
    }
}

impl Deref for Window {
    type Target = WindowRequest;

    fn deref(&self) -> &WindowRequest {
        &self.request
    }
}

impl DerefMut for Window {
    fn deref_mut(&mut self) -> &mut WindowRequest {
        &mut self.request
    }
}

impl study::Window for Window {
    fn total(&self) -> Duration {
        let Point { warmup, duration, connections, in_flight, active, .. } = self.point;
        let own_server = if active.is_some() { OWN_SERVER } else { Duration::ZERO };
        match self.purpose {
            Purpose::Figures | Purpose::NoiseFloor(_) | Purpose::Wire => {
                let opened_and_drained = PER_CONNECTION * connections + PER_CALL * in_flight;
                WINDOW_OVERHEAD + own_server + opened_and_drained + warmup + duration
            }
            Purpose::SystemCalls => {
                COUNTING_OVERHEAD + 2 * warmup + duration + Point::counted_first(duration)
            }
        }
    }
    fn group(&self) -> String {
        match self.purpose {
            Purpose::Figures => self.point.to_string(),
            Purpose::NoiseFloor(_) => format!("{}, ours against ours", self.point),
            Purpose::SystemCalls => format!("{}, system calls", self.point),
            Purpose::Wire => format!("{}, the wire", self.point),
        }
    }

    fn is_reference(&self) -> bool {
        self.pair.is_none()
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pair = self.pair.as_ref().map(|pair| match self.strategy {
            None => pair.to_string(),
            Some(strategy) => format!("{pair}, {strategy}"),
        });
        match (&self.purpose, pair) {
            (Purpose::Figures, None) => self.point.fmt(f),
            (Purpose::Figures, Some(pair)) => write!(f, "{}: {pair}", self.point),
            (Purpose::NoiseFloor(label), _) => write!(f, "{}: ours against ours, {label:?}", self.point),
            (Purpose::SystemCalls, pair) => {
                write!(f, "{}: {}, system calls", self.point, pair.unwrap_or_default())
            }
            (Purpose::Wire, pair) => write!(f, "{}: {}, the wire", self.point, pair.unwrap_or_default()),
        }
    }
}
