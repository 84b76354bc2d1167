//! Resource usage of processes in a window: [`Usage`].

use serde::{Deserialize, Serialize};

use crate::figures::percent;
use crate::programs::thousandths;
use crate::validity::{Cause, Reason};

/// Resource usage of the client and the server process in the measured window, without the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Time between the two samples, in ns.
    ///
    /// The parent samples right after the driver reports `measuring` and `measured`. The window is therefore about 0.1
    /// ms longer than the driver's `LoadResult::duration_ns`.
    pub window_ns: u64,
    /// Usage of the driver process.
    pub client: ProcessUsage,
    /// Usage of the server process.
    pub server: ProcessUsage,
    /// Server memory. `None` if the client did not report when its connections were established.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_memory: Option<ServerMemory>,
}

/// Resident memory of the server process and its descendants, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerMemory {
    /// With one connection, idle after one call.
    pub first: u64,
    /// With all connections, each idle after one call.
    pub connected: u64,
    /// At the end of the warm-up.
    pub measuring: u64,
}

/// Maximum share of the time ready to run that a process may be kept waiting for a CPU before it counts as disturbed.
///
/// Measured on two processors of an Intel Xeon (Linux 6.18), as the waiting share of a load generator's threads:
///
/// | | |
/// | --- | --- |
/// | no other program on its processor, 1 or 64 calls in flight, 1,000 or 10,000 calls per second | 0.4 to 7 % |
/// | one other busy program on its processor | 44 to 50 % |
/// | three other busy programs | 75 to 91 % |
/// | a CPU quota of 20 % (cgroup) | 77 to 80 % |
/// | the server on the same processors | 29 to 35 %, which does not count as kept waiting |
pub(super) const WAITING_SHARE_MAX: f64 = 0.2;
/// Minimum waiting time that kernel ticks can distinguish from none: four ticks, in ns.
pub(super) const KEPT_WAITING_NS_MIN: u64 = 40_000_000;

impl Usage {
    /// Returns why the figures of the window must not be used: a side was [kept waiting](ProcessUsage::kept_waiting)
    /// for a CPU. Otherwise `None`. If both were, reports the one with the larger share.
    pub fn disturbance(&self) -> Option<Reason> {
        // A side that hardly ran may have the larger share without having waited long enough to count.
        let disturbed =
            [("client", &self.client), ("server", &self.server)].into_iter().filter_map(|(side, used)| {
                Some((used.kept_waiting_share(), used.kept_waiting(side, self.window_ns)?))
            });
        disturbed.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, reason)| reason)
    }
}

/// Total resource usage of one process and its descendants, over all threads.
///
/// Divide by the driver's `LoadResult::messages` for values per operation. CPU time includes threads that exited in the
/// window. Context switches and waiting times of such threads are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// CPU time in user space, in ns. The sum with `system_ns` is exact. The split is sampled by the kernel's tick, so
    /// it is coarse in short windows.
    pub user_ns: u64,
    /// CPU time in the kernel on behalf of the process, in ns.
    pub system_ns: u64,
    /// Number of times that a thread blocked.
    pub voluntary_switches: u64,
    /// Number of times that a thread was preempted.
    pub involuntary_switches: u64,
    /// Time that threads were runnable but not running, summed over threads, in ns.
    #[serde(default)]
    pub waited_ns: u64,
    /// Time that other programs ran on the CPUs of this process, in ns, to 10 ms. Excludes the other side.
    #[serde(default)]
    pub others_ns: u64,
    /// Time that the host took from those CPUs (`steal`), in ns, to 10 ms.
    #[serde(default)]
    pub stolen_ns: u64,
    /// Time that a CPU quota throttled the cgroup of this process, in ns, summed over CPUs.
    #[serde(default)]
    pub throttled_ns: u64,
    /// Number of CPUs that the process may run on; 0: unknown.
    #[serde(default)]
    pub processors: u32,
}

impl ProcessUsage {
    /// Returns the CPU time, user plus system, in ns.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }

    /// Returns how long the process waited for a CPU because of others, in ns.
    ///
    /// Other programs and a quota account for at most their own time and at most the waiting time, whichever is less.
    /// Steal time is added.
    pub(super) fn kept_waiting_ns(&self) -> u64 {
        self.waited_ns.min(self.others_ns + self.throttled_ns) + self.stolen_ns
    }

    /// Returns the share of the time that its threads were ready to run in which others kept them waiting.
    pub(super) fn kept_waiting_share(&self) -> f64 {
        share_of(self.kept_waiting_ns(), self.cpu_ns())
    }

    /// Returns the share of the time that its threads were ready to run in which they waited for any reason.
    pub(super) fn waiting_share(&self) -> f64 {
        share_of(self.waited_ns, self.cpu_ns())
    }

    /// Describes the disturbance if others kept the process waiting for a CPU long enough. That is more than 20 % of
    /// the time that its threads were ready to run, and at least 40 ms.
    pub fn kept_waiting(&self, side: &str, window_ns: u64) -> Option<Reason> {
        let share = self.kept_waiting_share();
        if self.kept_waiting_ns() < KEPT_WAITING_NS_MIN || share <= WAITING_SHARE_MAX {
            return None;
        }
        let is_most = |taken_ns: u64| taken_ns * 2 > self.kept_waiting_ns();
        let (cause, taken_ns, who) = if is_most(self.stolen_ns) {
            (Cause::Steal, self.stolen_ns, "CPU steal by the host")
        } else if is_most(self.throttled_ns) {
            (Cause::Quota, self.throttled_ns, "a CPU quota (cgroup) limited it")
        } else {
            (Cause::OtherPrograms, self.others_ns, "other programs were running")
        };
        let share = percent(share);
        let text = format!("the {side} waited for a CPU for {share} of its runnable time: {who}");
        let processors = if cause == Cause::Quota { 1 } else { self.processors.max(1) };
        let taken = taken_ns as f64 / (window_ns.max(1) as f64 * f64::from(processors));
        Some(Reason { cause, text, share: Some(thousandths(taken)) })
    }

    /// Returns the number of context switches, voluntary and involuntary.
    pub fn context_switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }
}

/// Returns the waiting share of waiting and running time, from 0 to 1.
fn share_of(waited_ns: u64, ran_ns: u64) -> f64 {
    waited_ns as f64 / (waited_ns + ran_ns).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_without_other_programs_is_no_disturbance() {
        let alone = ProcessUsage { user_ns: 240_000_000, waited_ns: 900_000_000, ..ProcessUsage::default() };
        let check = |client: ProcessUsage, expected: Option<(Cause, &str)>| {
            let server = ProcessUsage::default();
            let usage = Usage { window_ns: 300_000_000, client, server, server_memory: None };
            let reason = usage.disturbance();
            assert_eq!(
                reason.as_ref().map(|reason| reason.cause),
                expected.map(|(cause, _)| cause),
                "{reason:?}"
            );
            let share = expected.map_or("", |(_, share)| share);
            assert!(
                reason.is_none_or(|reason| reason.text.contains(&format!("waited for a CPU for {share} of")))
            );
        };
        check(alone, None);
        check(ProcessUsage { others_ns: 10_000_000, ..alone }, None);
        check(ProcessUsage { others_ns: 80_000_000, ..alone }, Some((Cause::OtherPrograms, "25 %")));
        check(ProcessUsage { stolen_ns: 80_000_000, ..alone }, Some((Cause::Steal, "25 %")));
        check(ProcessUsage { throttled_ns: 80_000_000, ..alone }, Some((Cause::Quota, "25 %")));
        // Other programs ran while the process had nothing to run.
        check(ProcessUsage { others_ns: 200_000_000, waited_ns: 0, ..alone }, None);
    }

    #[test]
    fn side_that_hardly_ran_does_not_hide_disturbance_of_other_side() {
        let used = |ran_ns, waited_ns| ProcessUsage {
            user_ns: ran_ns,
            waited_ns,
            others_ns: 200_000_000,
            ..ProcessUsage::default()
        };
        let client = used(200_000_000, 200_000_000);
        let server = used(1_000_000, 1_500_000);
        let check = |client, server, expected: &str| {
            let usage = Usage { window_ns: 400_000_000, client, server, server_memory: None };
            let reason = usage.disturbance().unwrap();
            assert!(reason.text.starts_with(expected), "{reason:?}");
        };
        check(client, server, "the client waited for a CPU for 50 %");
        check(server, client, "the server waited for a CPU for 50 %");
        check(client, used(50_000_000, 150_000_000), "the server waited for a CPU for 75 %");
    }

    #[test]
    fn share_of_disturbance_is_of_all_cpus_of_the_side() {
        let used = ProcessUsage {
            waited_ns: 600_000_000,
            others_ns: 600_000_000,
            processors: 2,
            ..ProcessUsage::default()
        };
        let reason = used.kept_waiting("client", 600_000_000).unwrap();
        assert_eq!(reason.share, Some(0.5));
    }
}
