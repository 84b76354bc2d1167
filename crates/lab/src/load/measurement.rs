//! Results of one window of calls.

use serde::{Deserialize, Serialize};
use thalweg_measure::usage::Usage;

use crate::record::LoadResult;

/// Result of a window, by the window's purpose.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowMeasurement {
    /// Figures of the study or of its noise floor.
    Figures(Box<MeasuredLoad>),
    /// System calls per operation.
    SystemCalls(SystemCalls),
    /// Traffic seen on the wire.
    Wire(Box<WireTraffic>),
}

/// Figures of a load and the resources it used.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredLoad {
    /// The driver's result.
    pub(crate) load: LoadResult,
    /// Resources used by both processes; `None` if the kernel did not report them.
    pub(crate) usage: Option<Usage>,
}

/// System calls per operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SystemCalls {
    /// Calls of the driver.
    pub(crate) client_per_operation: f64,
    /// Calls of the server.
    pub(crate) server_per_operation: f64,
}

/// Traffic seen on the wire during the measured time. The load is a closed loop, so calls were always outstanding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WireTraffic {
    /// Watched time.
    pub(crate) watched_ns: u64,
    /// Times when no connection had a byte in transit.
    pub(crate) all: IdleGaps,
    /// Times when a connection had no byte in transit, summed over all connections.
    pub(crate) each: IdleGaps,
    /// Bytes that the client sent.
    pub(crate) sent_bytes: u64,
    /// Bytes that the server sent.
    pub(crate) received_bytes: u64,
    /// Share of the time in which the hop's thread did not sleep. Near 1, the hop was the bottleneck.
    pub(crate) hop_busy_share: f64,
}

/// Gaps in which nothing moved. Lengths are in ns, exact to 1 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct IdleGaps {
    /// Share of the time.
    pub(crate) share: f64,
    /// Number of gaps. Without any, the percentiles are 0.
    pub(crate) gaps: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p90_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) max_ns: u64,
    /// Histogram of lengths: each bucket's upper bound in ns and its number of gaps. Empty buckets are left out.
    pub(crate) buckets: Vec<(u64, u64)>,
}
