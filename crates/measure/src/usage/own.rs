//! Time that a load generator's own threads wait for a CPU.

use std::sync::{Arc, OnceLock};

use crate::figures::percent;
use crate::kernel::ServerLocation;
use crate::usage::sample::{MeasuredProcesses, Sample, SideProcesses};
use crate::usage::used::{KEPT_WAITING_NS_MIN, Usage, WAITING_SHARE_MAX};
use crate::validity::{Cause, Reason};

/// CPU time and waiting time of this process since a moment, and of the servers on this machine that it is connected
/// to.
#[derive(Clone, Debug)]
pub struct OwnUsage {
    /// Empty until the first sample is taken.
    start: Arc<OnceLock<StartSample>>,
}

#[derive(Debug)]
struct StartSample {
    sides: MeasuredProcesses,
    sample: Sample,
    is_server_hidden: bool,
}

/// A note that the threads of a load generator had to wait for a CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptWaiting {
    /// The reason.
    pub reason: Reason,
    /// Whether the figures must not be used. False if the server itself may be the cause.
    pub invalidates: bool,
}

impl OwnUsage {
    /// Starts watching on a separate thread, because finding the servers takes some ms.
    ///
    /// `targets` are the addresses that it is connected to; Unix domain sockets start with `unix:`.
    pub fn start(targets: &[String]) -> Self {
        let start = Arc::new(OnceLock::new());
        let (cell, targets) = (start.clone(), targets.to_vec());
        // Watches nothing if the thread cannot be started.
        let _ = std::thread::Builder::new().spawn(move || {
            if let Some(begin) = StartSample::now(&targets) {
                let _ = cell.set(begin);
            }
        });
        Self { start }
    }

    /// Returns a note if the threads had to wait for a CPU since then. `None` if not, or if `/proc` is not readable.
    pub fn kept_waiting(&self) -> Option<KeptWaiting> {
        let StartSample { sides, sample, is_server_hidden } = self.start.get()?;
        let usage = sides.sample().ok()?.since(sample);
        waiting(&usage, *is_server_hidden)
    }
}

impl StartSample {
    fn now(targets: &[String]) -> Option<Self> {
        let mut sides =
            MeasuredProcesses { client: SideProcesses::of(std::process::id(), None), server: None };
        let is_server_hidden = sides.find_server(targets) == ServerLocation::Hidden;
        Some(Self { sample: sides.sample().ok()?, sides, is_server_hidden })
    }
}

/// Judges the client's usage. `is_server_hidden`: other programs may be the server.
fn waiting(usage: &Usage, is_server_hidden: bool) -> Option<KeptWaiting> {
    let client = &usage.client;
    if let Some(reason) = client.kept_waiting("client", usage.window_ns) {
        let invalidates = !(is_server_hidden && reason.cause == Cause::OtherPrograms);
        return Some(KeptWaiting { reason, invalidates });
    }
    let is_in_the_way = usage.server.cpu_ns() > 0
        && client.waited_ns >= KEPT_WAITING_NS_MIN
        && client.waiting_share() > WAITING_SHARE_MAX;
    is_in_the_way.then(|| {
        let text = format!(
            "the client waited for a CPU for {} of its runnable time, because the server runs on the same CPUs; give \
             each its own (taskset)",
            percent(client.waiting_share())
        );
        KeptWaiting { reason: Reason::new(Cause::OtherPrograms, text), invalidates: false }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::ProcessUsage;

    #[test]
    fn server_on_same_cpus_is_milder_than_other_programs() {
        let check = |others_ns: u64, servers_ns: u64, is_hidden: bool, expected: Option<(bool, &str)>| {
            let client = ProcessUsage {
                user_ns: 500_000_000,
                waited_ns: 400_000_000,
                others_ns,
                processors: 1,
                ..ProcessUsage::default()
            };
            let server = ProcessUsage { user_ns: servers_ns, ..ProcessUsage::default() };
            let usage = Usage { window_ns: 1_000_000_000, client, server, server_memory: None };
            let note = waiting(&usage, is_hidden);
            assert_eq!(note.as_ref().map(|note| note.invalidates), expected.map(|it| it.0), "{note:?}");
            assert!(note.is_none_or(|note| note.reason.text.ends_with(expected.unwrap().1)));
        };
        check(400_000_000, 0, false, Some((true, "other programs were running")));
        check(400_000_000, 0, true, Some((false, "other programs were running")));
        check(0, 400_000_000, false, Some((false, "give each its own (taskset)")));
        // The client's own threads wait for each other.
        check(0, 0, false, None);
    }
}
