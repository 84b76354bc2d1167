//! What a window of calls finds.

use serde::{Deserialize, Serialize};
use thalweg_measure::usage::Usage;

use crate::record::LoadResult;

/// What was found in a window, by what it was measured for.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Figures: of the study, or of its noise floor.
    Figures(Box<Measured>),
    /// System calls per operation.
    SystemCalls(SystemCalls),
    /// What was seen on the wire.
    Wire(Box<Wire>),
}

/// What was driven, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What the driver found.
    pub(crate) load: LoadResult,
    /// What both processes used meanwhile; `None` where the kernel did not tell.
    pub(crate) usage: Option<Usage>,
}

/// System calls per operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SystemCalls {
    /// The driver's.
    pub(crate) client_per_operation: f64,
    /// The server's.
    pub(crate) server_per_operation: f64,
}

/// What was seen on the wire in the measured time. The load is a closed loop, so calls were outstanding all the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// For how long.
    pub(crate) watched_ns: u64,
    /// No byte was under way, on no connection.
    pub(crate) all: Idle,
    /// No byte was under way on a connection, for all of them and added up.
    pub(crate) each: Idle,
    /// Bytes that the client sent.
    pub(crate) sent_bytes: u64,
    /// Bytes that the server sent.
    pub(crate) received_bytes: u64,
    /// The share of the time in which the hop's thread did not sleep. Near 1, the hop was the limit.
    pub(crate) hop_busy_share: f64,
}

/// When nothing moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Idle {
    /// The share of the time.
    pub(crate) share: f64,
    /// How many gaps there were, and how long, ns, to 1 %. The percentiles are 0 when there were none.
    pub(crate) gaps: u64,
    /// Half of the gaps are no longer.
    pub(crate) p50_ns: u64,
    /// 90 %.
    pub(crate) p90_ns: u64,
    /// 99 %.
    pub(crate) p99_ns: u64,
    /// The longest.
    pub(crate) max_ns: u64,
    /// How many gaps are no longer than so many ns, and longer than the bound before. Bounds without any are left out.
    pub(crate) buckets: Vec<(u64, u64)>,
}
