//! A case measured once by one way, and what came of it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::case::Case;
use super::way::Way;
use crate::echo::{Looks, Protocol, Shape};
use crate::load::Measured;
use crate::peers::COMPILED_LATE;
use crate::stack::Stack;
use crate::study;

/// What a window takes besides driving: the client's process starts, connects, and ends what is in flight.
const OVERHEAD: Duration = Duration::from_millis(60);
/// What starting a server takes, and one whose code is compiled while it runs.
const SERVER_STARTS: Duration = Duration::from_millis(500);
const LATE_SERVER_STARTS: Duration = Duration::from_secs(4);
/// What a call takes that carries next to nothing, and what 100,000 letters add: at our server and by gRPC, and by what
/// other servers make of JSON, from axum to a gateway in a process of its own.
const CALL_NS: u64 = 150_000;
const LETTERS: u64 = 100_000;
const OF_LETTERS_NS: u64 = 1_200_000;
const OF_LETTERS_BY_OTHERS_JSON_NS: u64 = 4_000_000;

/// A case measured once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JsonWindow {
    /// By which way.
    pub(crate) way: Way,
    /// What.
    pub(crate) case: Case,
    /// What for.
    pub(crate) purpose: Purpose,
    /// Which turn, from 0.
    pub(crate) round: u32,
    /// The way is measured beside itself: the noise floor.
    #[serde(default)]
    pub(crate) again: bool,
    /// It is what the way beside itself is compared with, and in no other figure: where rounds are few, for the noise
    /// floor there are more.
    #[serde(default)]
    pub(crate) for_noise: bool,
    /// Calls under way at once.
    pub(crate) in_flight: u32,
    /// Driven before, ns.
    pub(crate) warmup_ns: u64,
    /// So long, or for so many calls.
    pub(crate) length: WindowLength,
}

/// How long a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WindowLength {
    /// ns.
    Ns(u64),
    Calls(u64),
}

/// What a window is measured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Purpose {
    /// One call at a time, from object to object, divided into its stages.
    Latency,
    /// As many calls as the server takes, by a client that encodes nothing.
    Rate,
    /// The first calls that a server ever sees: it is started for them.
    Cold,
    /// Calls that nothing is learnt from: a server with a compiler that works while it runs gets its time.
    WarmUp,
}

/// What a window found.
pub(crate) type Found = Measured;

impl JsonWindow {
    /// How long it drives, warm-up included, as far as one knows before.
    pub(super) fn driven(&self) -> Duration {
        let measured = match self.length {
            WindowLength::Ns(ns) => Duration::from_nanos(ns),
            WindowLength::Calls(calls) => self.call() * u32::try_from(calls).unwrap_or(u32::MAX),
        };
        Duration::from_nanos(self.warmup_ns) + measured
    }

    /// How long a call takes, by who serves it, by the message, and by what a network adds.
    fn call(&self) -> Duration {
        let of_letters_ns = if self.way.stack.is_ours() || self.way.protocol == Protocol::Grpc {
            OF_LETTERS_NS
        } else {
            OF_LETTERS_BY_OTHERS_JSON_NS
        };
        let letters = match self.case.shape {
            Shape::Strings { count, letters } => u64::from(count) * u64::from(letters),
            Shape::Person | Shape::Study(_) | Shape::Own => 0,
        };
        Duration::from_nanos(CALL_NS + letters * of_letters_ns / LETTERS) + self.case.round_trip()
    }

    /// What is looked at: calls in flight that warm a server up are those of which rates are made.
    pub(super) fn looks(&self) -> Looks {
        match self.purpose {
            Purpose::Rate => Looks::Bytes,
            Purpose::WarmUp if self.in_flight > 1 => Looks::Bytes,
            Purpose::Latency | Purpose::Cold | Purpose::WarmUp => Looks::Times,
        }
    }
}

/// What starting a server takes, at the most.
pub(super) fn starts(stack: &Stack) -> Duration {
    if COMPILED_LATE.contains(&stack.name()) { LATE_SERVER_STARTS } else { SERVER_STARTS }
}

impl study::Window for JsonWindow {
    fn total(&self) -> Duration {
        let start = if self.purpose == Purpose::Cold { starts(&self.way.stack) } else { Duration::ZERO };
        OVERHEAD + start + self.driven()
    }

    fn group(&self) -> String {
        format!("{}, {}", self.case, self.purpose)
    }
}

impl fmt::Display for JsonWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let again = if self.again { ", beside itself" } else { "" };
        write!(f, "{}: {}, {}{again}", self.case, self.way, self.purpose)
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Latency => "one call at a time",
            Self::Rate => "as many calls as the server takes",
            Self::Cold => "the first calls of a server",
            Self::WarmUp => "warming up",
        })
    }
}

/// A window, and what came of it.
pub(crate) type WindowResult = crate::load::WindowResult<AskedOfWay>;

/// What was asked, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AskedOfWay {
    pub(crate) window: JsonWindow,
}
