//! A point measured once, and what for.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::point::Point;
use super::strategy::Strategy;
use crate::stack::{Pair, Stack};
use crate::study::{self, ExecuteError};

/// What is spent on a window besides driving: the driver's process starts, connects, and ends what is in flight.
const WINDOW_OVERHEAD: Duration = Duration::from_millis(100);
/// What a connection takes to come about, with its first call, and what a call takes that is under way at the end.
const PER_CONNECTION: Duration = Duration::from_micros(150);
const PER_CALL: Duration = Duration::from_micros(8);
/// What a server of its own takes to start and to end, and rests while memory is looked at.
const OWN_SERVER: Duration = Duration::from_millis(250);
/// What counting system calls takes besides driving: both processes are attached to and let go, twice.
const COUNTING_OVERHEAD: Duration = Duration::from_millis(700);

/// A point measured once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// What is measured.
    pub(crate) asked: Asked,
    /// What for.
    pub(crate) purpose: Purpose,
}

/// What is measured in a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// What moves which messages.
    pub(crate) point: Point,
    /// Whose client and server; `None` for a bare socket, and only for that.
    pub(crate) pair: Option<Pair>,
    /// How the client comes by its connections; `None` where the point's number of them says all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) strategy: Option<Strategy>,
    /// Which turn of the point, from 0.
    #[serde(default)]
    pub(crate) round: u32,
}

/// What a window is measured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The study's figures.
    Figures,
    /// The noise floor: ours against ours.
    NoiseFloor(Label),
    /// System calls per operation. Counting slows what it counts, so nothing else is learnt from it.
    SystemCalls,
    /// Gaps between bytes. They are watched by a hop in between, so nothing else is learnt from it.
    Wire,
}

/// The two sides of an A/A comparison, which differ in nothing but their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Label {
    A,
    B,
}

impl Window {
    /// A window of figures, of the first round.
    pub(crate) fn of_figures(point: Point, pair: Option<Pair>, strategy: Option<Strategy>) -> Self {
        Self { asked: Asked { point, pair, strategy, round: 0 }, purpose: Purpose::Figures }
    }

    /// The pair of a window that makes calls.
    pub(crate) fn callers(&self) -> Result<Pair, ExecuteError> {
        let nobody = || ExecuteError::Window("nobody is named whose calls these are".to_owned());
        self.pair.clone().ok_or_else(nobody)
    }

    /// The bare client drives.
    pub(crate) fn is_bare(&self) -> bool {
        self.pair.as_ref().is_some_and(|pair| pair.client == Stack::bare())
    }
}

impl Deref for Window {
    type Target = Asked;

    fn deref(&self) -> &Asked {
        &self.asked
    }
}

impl DerefMut for Window {
    fn deref_mut(&mut self) -> &mut Asked {
        &mut self.asked
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

    fn is_beside(&self) -> bool {
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
