//! Latencies by server: [`ServerLatencies`].

use std::collections::HashMap;

use thalweg_measure::distribution::Distribution;

/// Latencies of successful calls by server, in constant memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerLatencies(HashMap<String, Distribution>);

/// Maximum number of servers with latencies: 17 MB of histograms a thread.
const SERVERS_MAX: usize = 64;

impl ServerLatencies {
    pub(crate) fn record(&mut self, server: &str, took_ns: u64) {
        match self.0.get_mut(server) {
            Some(known) => known.record(took_ns),
            None => self.add(server, took_ns),
        }
    }

    #[cold]
    fn add(&mut self, server: &str, took_ns: u64) {
        if self.0.len() < SERVERS_MAX {
            self.0.entry(server.to_owned()).or_default().record(took_ns);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (server, latencies) in &other.0 {
            self.0.entry(server.clone()).or_default().merge(latencies);
        }
    }

    pub(crate) fn get(&self, server: &str) -> Option<&Distribution> {
        self.0.get(server)
    }
}
