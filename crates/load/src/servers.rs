//! Calls by server, as the channels count them. Counting costs calls nothing.

use std::collections::{BTreeMap, HashMap};

use thalweg::Channel;
use thalweg::inventory::{Counts, PeerCalls};

use crate::call::CallKind;
use crate::run::{ServerRun, Timing};
use crate::scenario::{Channels, Scenario};
use crate::server_latencies::ServerLatencies;

/// The calls of a run by server.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// Last counts of each lane. Lanes that are gone keep theirs.
    lanes: HashMap<u64, Vec<PeerCalls>>,
    /// Calls before the measured time.
    before: BTreeMap<String, Counts>,
    /// Whether later calls do not count.
    is_over: bool,
}

impl Servers {
    /// Starts counting.
    pub(crate) fn begin(&mut self, scenario: &Scenario) {
        self.read(scenario);
        self.before = self.counts();
    }

    /// Reads the counts. Lanes that close between two readings lose the calls since the first one.
    pub(crate) fn read(&mut self, scenario: &Scenario) {
        let Channels::Shared(channels) = &scenario.channels else { return };
        if !self.is_over {
            let endpoints =
                channels.iter().flatten().map(Channel::snapshot).flat_map(|channel| channel.endpoints);
            let lanes = endpoints.flat_map(|endpoint| endpoint.lanes);
            self.lanes.extend(lanes.map(|lane| (lane.id, lane.peers)));
        }
    }

    /// Stops counting.
    pub(crate) fn end(&mut self, scenario: &Scenario) {
        self.read(scenario);
        self.is_over = true;
    }

    fn counts(&self) -> BTreeMap<String, Counts> {
        let mut all: BTreeMap<String, Counts> = BTreeMap::new();
        for PeerCalls { peer, calls, .. } in self.lanes.values().flatten() {
            *all.entry(peer.clone()).or_default() += *calls;
        }
        all
    }

    /// Returns the servers that were called, with their latencies.
    pub(crate) fn runs(&self, scenario: &Scenario, latencies: &ServerLatencies) -> Vec<ServerRun> {
        let has_failures = !cancels_streams(scenario);
        let run = |(server, now): (String, Counts)| {
            let before = self.before.get(&server).copied().unwrap_or_default();
            let failed = now.failed.saturating_sub(before.failed);
            let calls = now.succeeded.saturating_sub(before.succeeded) + failed;
            let latency = latencies.get(&server).and_then(Timing::of);
            ServerRun { server, calls, failed: has_failures.then_some(failed), latency }
        };
        self.counts().into_iter().map(run).filter(|run| run.calls > 0).collect()
    }
}

/// Returns whether the client ends streams by cancelling them, which a channel counts as failures.
fn cancels_streams(scenario: &Scenario) -> bool {
    scenario.steps().any(|(_, step)| {
        let (kind, stream) = (step.call.kind, &step.call.stream);
        let is_timed = stream.lasts.is_some() || stream.lasts_to_end;
        stream.responses.is_some() || kind == CallKind::ServerStream && is_timed
    })
}
