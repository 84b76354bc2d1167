//! Calls by server: [`ServerTallies`].

use std::collections::HashMap;
use std::sync::Arc;

use thalweg_measure::distribution::Distribution;

use crate::run::ServerInterval;

/// Finished calls by server, in constant memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerTallies(HashMap<Arc<str>, ServerTally>);

/// Finished calls whose last attempt went to one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerTally {
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    /// Time from the intended start to the end, of calls that ended with OK; `None` beyond [`LATENCIES_MAX`].
    latency: Option<Distribution>,
    /// Calls up to the end of the last interval, and the failed ones.
    reported: (u64, u64),
}

/// Maximum number of servers with latencies: 17 MB of histograms a thread.
const LATENCIES_MAX: usize = 64;
/// Maximum number of servers: four times those of a list.
const SERVERS_MAX: usize = 4096;

impl ServerTally {
    /// Returns the latencies, if they are those of all successful calls.
    pub(crate) fn latency(&self) -> Option<&Distribution> {
        self.latency.as_ref().filter(|latency| latency.len() == self.ok)
    }

    fn count(&mut self, is_ok: bool, took_ns: u64) {
        if is_ok {
            self.ok += 1;
            if let Some(latency) = &mut self.latency {
                latency.record(took_ns);
            }
        } else {
            self.failed += 1;
        }
    }
}

impl ServerTallies {
    /// Counts a finished call.
    pub(crate) fn count(&mut self, server: &Arc<str>, is_ok: bool, took_ns: u64) {
        match self.0.get_mut(server) {
            Some(known) => known.count(is_ok, took_ns),
            None => self.add(server, is_ok, took_ns),
        }
    }

    #[cold]
    fn add(&mut self, server: &Arc<str>, is_ok: bool, took_ns: u64) {
        if self.0.len() < SERVERS_MAX {
            let latency = (self.0.len() < LATENCIES_MAX).then(Distribution::new);
            let tally =
                self.0.entry(Arc::clone(server)).or_insert(ServerTally { latency, ..Default::default() });
            tally.count(is_ok, took_ns);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (server, theirs) in &other.0 {
            let mine = self.0.entry(Arc::clone(server)).or_default();
            mine.ok += theirs.ok;
            mine.failed += theirs.failed;
            match (&mut mine.latency, &theirs.latency) {
                (Some(mine), Some(theirs)) => mine.merge(theirs),
                (mine @ None, theirs) => mine.clone_from(theirs),
                (Some(_), None) => {}
            }
        }
    }

    /// Adds the calls since the last time to `all`.
    pub(crate) fn take_recent(&mut self, all: &mut Vec<ServerInterval>) {
        for (server, tally) in &mut self.0 {
            let now = (tally.ok + tally.failed, tally.failed);
            let (calls, failed) = std::mem::replace(&mut tally.reported, now);
            let recent =
                ServerInterval { server: server.to_string(), calls: now.0 - calls, failed: now.1 - failed };
            ServerInterval::add(all, &recent);
        }
    }

    /// Returns each server with its calls.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &ServerTally)> {
        self.0.iter().map(|(server, tally)| (&**server, tally))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_latencies_of_each_server_are_those_of_all_threads() {
        let servers: Vec<Arc<str>> = (0..2 * LATENCIES_MAX).map(|number| number.to_string().into()).collect();
        let (mut one, mut other) = (ServerTallies::default(), ServerTallies::default());
        for (number, server) in servers.iter().enumerate() {
            one.count(server, true, 1);
            // Another thread meets them in reverse order.
            other.count(&servers[servers.len() - 1 - number], number > 0, 3);
        }
        let mut recent = Vec::new();
        one.take_recent(&mut recent);
        other.take_recent(&mut recent);
        one.count(&servers[0], false, 9);
        one.take_recent(&mut recent);
        one.merge(&other);
        assert_eq!((one.iter().count(), recent.len()), (servers.len(), servers.len()));
        for (server, tally) in one.iter() {
            let of_interval = recent.iter().find(|one| one.server == server).unwrap();
            assert_eq!((of_interval.calls, of_interval.failed), (tally.ok + tally.failed, tally.failed));
            if let Some(latency) = tally.latency() {
                assert_eq!(latency.len(), tally.ok);
            }
        }
        assert_eq!(recent.iter().map(|one| (one.calls, one.failed)).max(), Some((3, 1)));
    }
}
