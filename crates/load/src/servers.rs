//! The servers of a run: those that were called, and those that were not, with what their channels know of them.

use std::collections::{BTreeMap, BTreeSet};

use thalweg::Channel;
use thalweg::channel::ConnectivityState;
use thalweg::inventory::{ChannelSnapshot, EndpointSnapshot};

use crate::run::{FurtherAttempts, ServerRun, Timing};
use crate::scenario::{Channels, Scenario};
use crate::server_tallies::ServerTallies;

/// The servers of a run.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// Attempts beyond the first, by server, since the channels exist; without a name if unknown.
    attempts: BTreeMap<String, FurtherAttempts>,
    /// The same before the measured time.
    before: BTreeMap<String, FurtherAttempts>,
    /// Servers that are not connected, and why.
    not_connected: BTreeMap<String, String>,
    /// All servers that a channel was connected to.
    known: BTreeSet<String>,
    /// Largest number of servers of a balanced channel; 0 without one.
    balanced: usize,
    /// Whether later attempts do not count.
    is_over: bool,
}

impl Servers {
    /// Starts counting.
    pub(crate) fn begin(&mut self, scenario: &Scenario) {
        self.read(scenario);
        self.before = self.attempts.clone();
    }

    /// Reads the channels' figures.
    pub(crate) fn read(&mut self, scenario: &Scenario) {
        let Channels::Shared(channels) = &scenario.channels else { return };
        if !self.is_over {
            let snapshots: Vec<_> = channels.iter().flatten().map(Channel::snapshot).collect();
            self.read_snapshots(&snapshots);
        }
    }

    fn read_snapshots(&mut self, channels: &[ChannelSnapshot]) {
        self.attempts.clear();
        self.not_connected.clear();
        let mut ready = BTreeSet::new();
        for channel in channels {
            for of_peer in &channel.further_attempts {
                *self.attempts.entry(of_peer.peer.clone().unwrap_or_default()).or_default() +=
                    FurtherAttempts::of(of_peer);
            }
            if channel.endpoints.len() > 1 {
                self.balanced = self.balanced.max(channel.endpoints.len());
            }
            for endpoint in &channel.endpoints {
                let names = names(endpoint);
                if endpoint.state == ConnectivityState::Ready {
                    ready.extend(names.iter().cloned());
                } else if let Some(why) = why_not_connected(endpoint) {
                    self.not_connected.extend(names.iter().map(|name| (name.clone(), why.clone())));
                }
                if endpoint.lanes.iter().any(|lane| !lane.peers.is_empty()) {
                    self.known.extend(names);
                }
            }
        }
        // Another channel, or another address of the endpoint, may be connected.
        self.not_connected.retain(|name, _| !ready.contains(name));
    }

    /// Stops counting.
    pub(crate) fn end(&mut self, scenario: &Scenario) {
        self.read(scenario);
        self.is_over = true;
    }

    /// Returns the largest number of servers of a balanced channel; 0 without one.
    pub(crate) fn balanced(&self) -> usize {
        self.balanced
    }

    /// Returns the attempts beyond the first, of all calls.
    pub(crate) fn attempts(&self) -> FurtherAttempts {
        let mut all = FurtherAttempts::default();
        self.attempts.keys().for_each(|server| all += self.attempts_of(server));
        all
    }

    fn attempts_of(&self, server: &str) -> FurtherAttempts {
        let of = |all: &BTreeMap<String, FurtherAttempts>| all.get(server).copied().unwrap_or_default();
        of(&self.attempts).since(of(&self.before))
    }

    /// Returns the servers. `ok` and `failed` are the calls of the run; `tallies` are those by server if there may be
    /// several.
    pub(crate) fn runs(&self, tallies: Option<&ServerTallies>, ok: u64, failed: u64) -> Vec<ServerRun> {
        let mut all: BTreeMap<String, ServerRun> = BTreeMap::new();
        let mut row = |server: &str, calls, failed, latency| {
            let run = ServerRun {
                attempts: self.attempts_of(server),
                not_connected: self.not_connected.get(server).cloned(),
                server: server.to_owned(),
                calls,
                failed: Some(failed),
                latency,
            };
            all.entry(server.to_owned()).or_insert(run);
        };
        match (tallies, self.known.first()) {
            (Some(tallies), _) => tallies.iter().for_each(|(server, tally)| {
                row(server, tally.ok + tally.failed, tally.failed, tally.latency().and_then(Timing::of));
            }),
            (None, Some(only)) if self.known.len() == 1 && ok + failed > 0 => {
                row(only, ok + failed, failed, None);
            }
            (None, _) => {}
        }
        // Without a policy, an address is used only if those before it fail.
        if self.balanced > 0 {
            self.not_connected.keys().chain(&self.known).for_each(|server| row(server, 0, 0, None));
        }
        let attempted = self.attempts.keys().filter(|server| !server.is_empty());
        attempted
            .filter(|server| self.attempts_of(server) != FurtherAttempts::default())
            .for_each(|server| row(server, 0, 0, None));
        all.into_values().collect()
    }
}

/// Returns the addresses that an endpoint was connected to, or else its name.
fn names(endpoint: &EndpointSnapshot) -> BTreeSet<String> {
    let peers = endpoint.lanes.iter().flat_map(|lane| &lane.peers).map(|peer| peer.peer.clone());
    let names: BTreeSet<String> = peers.collect();
    if names.is_empty() { BTreeSet::from([endpoint.name.clone()]) } else { names }
}

/// Returns why an endpoint has no connection; `None` if it needs none.
fn why_not_connected(endpoint: &EndpointSnapshot) -> Option<String> {
    let connecting =
        || (endpoint.state == ConnectivityState::Connecting).then(|| "still connecting".to_owned());
    endpoint.last_connect_error.clone().or_else(connecting)
}
