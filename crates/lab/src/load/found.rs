//! What a window of calls finds.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::figures::{count, percent, time};
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

/// What the client's and the server's process used in the measured time, warm-up excluded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Usage {
    /// Between the two moments at which the parent looked, which are just after those at which the driver said
    /// `measuring` and `measured`; ns. It is longer than [`LoadResult::duration_ns`] by some 0.1 ms.
    pub(crate) window_ns: u64,
    /// The driver's.
    pub(crate) client: ProcessUsage,
    /// The server's.
    pub(crate) server: ProcessUsage,
    /// What the server held, where the client said when it had its connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server_memory: Option<ServerMemory>,
}

/// Resident memory of the server's process and of those that it started, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerMemory {
    /// With one idle connection, which had made a call.
    pub(crate) first: u64,
    /// With all connections idle, each of which had made a call.
    pub(crate) connected: u64,
    /// When the warm-up was over.
    pub(crate) measuring: u64,
}

/// A side that was kept from its processors for a larger share of the window was not measured alone. On an idle machine
/// it is 3 to 8 %: the kernel's own threads carry packets there, on behalf of the process.
const KEPT_WAITING_SHARE_MAX: f64 = 0.15;
/// What the kernel's ticks can tell from none: four of them.
const KEPT_WAITING_NS_MIN: u64 = 40_000_000;

impl Usage {
    /// Says so when a side was kept from its processors for more than [`KEPT_WAITING_SHARE_MAX`] of the window.
    pub(crate) fn disturbance(&self) -> Option<String> {
        let sides = [("client", &self.client), ("server", &self.server)];
        let (side, used) = sides.into_iter().max_by_key(|(_, used)| used.kept_waiting_ns())?;
        let kept_ns = used.kept_waiting_ns();
        let share = kept_ns as f64 / self.window_ns.max(1) as f64;
        (kept_ns >= KEPT_WAITING_NS_MIN && share > KEPT_WAITING_SHARE_MAX).then(|| {
            let who = if used.stolen_ns * 2 > kept_ns {
                "CPU steal by the host"
            } else {
                "other programs were running"
            };
            format!("the {side} waited for a CPU for {} of the window: {who}", percent(share))
        })
    }
}

/// What one process used, with all its threads. Totals: divided by [`LoadResult::messages`] they are per operation.
/// Processor time includes that of threads that ended meanwhile; their context switches nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProcessUsage {
    /// Processor time in user space, ns. The sum is exact; how it divides into user and system is sampled by
    /// the kernel's tick, and coarse in short windows.
    pub(crate) user_ns: u64,
    /// Processor time in the kernel on the process's behalf, ns.
    pub(crate) system_ns: u64,
    /// Times that a thread gave up its processor to wait.
    pub(crate) voluntary_switches: u64,
    /// Times that a thread's processor was taken from it.
    pub(crate) involuntary_switches: u64,
    /// Time in which a thread was ready to run and others ran, added up over threads, ns.
    #[serde(default)]
    pub(crate) waited_ns: u64,
    /// Time that others ran on the processors that the process is kept on, ns, to 10 ms. 0 where it is kept on none.
    #[serde(default)]
    pub(crate) others_ns: u64,
    /// Time in which those processors would have run and the host ran something else (`steal`), ns, to 10 ms.
    #[serde(default)]
    pub(crate) stolen_ns: u64,
}

impl ProcessUsage {
    /// Processor time, user and system, ns.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }

    /// Time that the process was kept from its processors, ns: others ran there while it waited, which is at most the
    /// less of both, or the host took them away.
    fn kept_waiting_ns(&self) -> u64 {
        self.waited_ns.min(self.others_ns) + self.stolen_ns
    }

    /// Context switches of both kinds.
    pub(crate) fn context_switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }
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

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SystemCalls(SystemCalls { client_per_operation, server_per_operation }) => write!(
                f,
                "{client_per_operation:.2} system calls of the client, {server_per_operation:.2} of the server"
            ),
            Self::Wire(wire) => write!(f, "the wire was idle for {} of the time", percent(wire.all.share)),
            Self::Figures(measured) => {
                write!(f, "{}/s", count(measured.load.rate_per_s))?;
                if let Some(latency) = measured.load.latency_ns {
                    write!(f, ", median {}", time(latency.p50 as f64))?;
                }
                if let Some(pace) = measured.load.pace_ns {
                    write!(f, ", largest gap {}", time(pace.gap_max as f64))?;
                }
                match measured.load.error_count() {
                    0 => Ok(()),
                    errors => write!(f, ", {errors} errors"),
                }
            }
        }
    }
}
