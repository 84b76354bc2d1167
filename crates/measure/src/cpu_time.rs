//! CPU time of this process and its threads.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

/// CPU time, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Time in user space.
    pub user_ns: f64,
    /// Time in the kernel on behalf of the process.
    pub system_ns: f64,
}

impl CpuTime {
    /// Returns the CPU time of this process since it started, over all threads.
    pub fn of_this_process() -> std::io::Result<Self> {
        Self::of(UsageWho::RUSAGE_SELF)
    }

    /// Returns the CPU time of the calling thread since it started.
    pub fn of_this_thread() -> std::io::Result<Self> {
        Self::of(UsageWho::RUSAGE_THREAD)
    }

    fn of(who: UsageWho) -> std::io::Result<Self> {
        let usage = getrusage(who)?;
        Ok(Self {
            user_ns: usage.user_time().num_nanoseconds() as f64,
            system_ns: usage.system_time().num_nanoseconds() as f64,
        })
    }
}

impl std::ops::Sub for CpuTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { user_ns: self.user_ns - earlier.user_ns, system_ns: self.system_ns - earlier.system_ns }
    }
}

impl std::ops::Add for CpuTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { user_ns: self.user_ns + other.user_ns, system_ns: self.system_ns + other.system_ns }
    }
}

impl std::ops::Div<f64> for CpuTime {
    type Output = Self;

    fn div(self, count: f64) -> Self {
        Self { user_ns: self.user_ns / count, system_ns: self.system_ns / count }
    }
}
