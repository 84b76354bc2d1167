//! One measurement of a case by an endpoint.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::case::Case;
use super::endpoint::Endpoint;
use crate::echo::{ClientWork, Protocol, Shape};
use crate::load::MeasuredLoad;
use crate::peers::COMPILED_LATE;
use crate::stack::Stack;
use crate::study;

/// Time per window for starting the client, connecting, and finishing calls in flight.
const OVERHEAD: Duration = Duration::from_millis(60);
/// Time for starting a server, and for one with a just-in-time compiler.
const SERVER_STARTS: Duration = Duration::from_millis(500);
const LATE_SERVER_STARTS: Duration = Duration::from_secs(4);
/// Time of a nearly empty call, and the addition for 100,000 letters. The latter is for our server and gRPC, and for
/// JSON at other servers, from axum to a separate gateway.
const CALL_NS: u64 = 150_000;
const LETTERS: u64 = 100_000;
const OF_LETTERS_NS: u64 = 1_200_000;
const OF_LETTERS_BY_OTHERS_JSON_NS: u64 = 4_000_000;

/// One measurement of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JsonWindow {
    #[serde(rename = "way")]
    pub(crate) endpoint: Endpoint,
    pub(crate) case: Case,
    pub(crate) purpose: Purpose,
    /// Round, from 0.
    pub(crate) round: u32,
    /// Whether it is the duplicate for the noise floor.
    #[serde(default, rename = "again")]
    pub(crate) is_duplicate: bool,
    /// Whether it is used only for comparison with the duplicate. With few rounds, the noise floor needs extra
    /// windows.
    #[serde(default, rename = "for_noise")]
    pub(crate) is_noise_baseline: bool,
    pub(crate) in_flight: u32,
    /// Warm-up, ns.
    pub(crate) warmup_ns: u64,
    /// Duration or number of calls.
    pub(crate) length: WindowLength,
}

/// Length of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WindowLength {
    /// Duration, ns.
    Ns(u64),
    Calls(u64),
}

/// Purpose of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Purpose {
    /// One call at a time, from object to object, divided into stages.
    Latency,
    /// Maximum calls of the server, by a client that encodes nothing.
    Rate,
    /// First calls of a newly started server.
    Cold,
    /// Warm-up of a just-in-time compiler, without figures.
    WarmUp,
}

/// Result of a window.
pub(crate) type JsonMeasurement = MeasuredLoad;

impl JsonWindow {
    /// Returns the expected driving time, warm-up included.
    pub(super) fn driving_time(&self) -> Duration {
        let measured = match self.length {
            WindowLength::Ns(ns) => Duration::from_nanos(ns),
            WindowLength::Calls(calls) => self.call_time() * u32::try_from(calls).unwrap_or(u32::MAX),
        };
        Duration::from_nanos(self.warmup_ns) + measured
    }

    /// Returns the expected time of a call, by server, message and network.
    fn call_time(&self) -> Duration {
        let of_letters_ns = if self.endpoint.stack.is_ours() || self.endpoint.protocol == Protocol::Grpc {
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

    /// Returns what is measured. Warm-up with several calls in flight uses the same calls as rates.
    pub(super) fn recording(&self) -> ClientWork {
        match self.purpose {
            Purpose::Rate => ClientWork::Bytes,
            Purpose::WarmUp if self.in_flight > 1 => ClientWork::Bytes,
            Purpose::Latency | Purpose::Cold | Purpose::WarmUp => ClientWork::Times,
        }
    }
}

/// Returns the maximum time for starting a server.
pub(super) fn start_time_max(stack: &Stack) -> Duration {
    if COMPILED_LATE.contains(&stack.name()) { LATE_SERVER_STARTS } else { SERVER_STARTS }
}

impl study::Window for JsonWindow {
    fn total(&self) -> Duration {
        let start =
            if self.purpose == Purpose::Cold { start_time_max(&self.endpoint.stack) } else { Duration::ZERO };
        OVERHEAD + start + self.driving_time()
    }

    fn group(&self) -> String {
        format!("{}, {}", self.case, self.purpose)
    }
}

impl fmt::Display for JsonWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = if self.is_duplicate { ", beside itself" } else { "" };
        write!(f, "{}: {}, {}{suffix}", self.case, self.endpoint, self.purpose)
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

/// A window with its outcome.
pub(crate) type WindowResult = crate::load::WindowResult<JsonWindowRequest>;

/// The request, as serialized.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JsonWindowRequest {
    pub(crate) window: JsonWindow,
}
