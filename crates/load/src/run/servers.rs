//! Figures by server.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use thalweg::inventory::PeerAttempts;
use thalweg_measure::distribution::Latency;

use super::timing::Timing;

/// Calls to one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerRun {
    /// Address of the server, or its name if it was never connected.
    pub server: String,
    /// Calls of the run whose last attempt went to it.
    pub calls: u64,
    /// Those that failed; `null` in some results of earlier versions.
    pub failed: Option<u64>,
    /// Attempts beyond the first: retries of attempts that failed there, and hedges sent to it.
    #[serde(default)]
    pub attempts: FurtherAttempts,
    /// Why it is not connected at the end of the run; `null` if it is, or is not needed.
    #[serde(default)]
    pub not_connected: Option<String>,
    /// Latency of its successful calls; `null` if the target has only one address, for further ones of more than 64
    /// servers, and without such a call.
    #[serde(default)]
    pub latency: Option<Timing>,
}

impl ServerRun {
    /// Returns p50, p99 and maximum of its latency in ns, if known.
    pub fn times(&self) -> Option<[u64; 3]> {
        let Latency { p50, p99, max, .. } = self.latency.as_ref()?.ns;
        Some([p50, p99, max])
    }
}

/// Attempts at calls beyond the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FurtherAttempts {
    /// Attempts that failed and were made again by the retry policy.
    pub retries: u64,
    /// Attempts that the server did not process, and that were made again without a policy.
    pub transparent_retries: u64,
    /// Attempts made while others at the same call were under way.
    pub hedges: u64,
}

impl FurtherAttempts {
    pub(crate) fn of(peer: &PeerAttempts) -> Self {
        let PeerAttempts { retries, transparent_retries, hedges, .. } = *peer;
        Self { retries, transparent_retries, hedges }
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            retries: self.retries.saturating_sub(before.retries),
            transparent_retries: self.transparent_retries.saturating_sub(before.transparent_retries),
            hedges: self.hedges.saturating_sub(before.hedges),
        }
    }

    /// Returns the retries, by the policy and without.
    pub(crate) fn all_retries(&self) -> u64 {
        self.retries + self.transparent_retries
    }

    /// Returns the counts that are not zero: `21 retries, 3 transparent retries`. Empty if all are.
    pub fn text(&self) -> String {
        let counts = [
            (self.retries, "retry", "retries"),
            (self.transparent_retries, "transparent retry", "transparent retries"),
            (self.hedges, "hedge", "hedges"),
        ];
        let there = counts.into_iter().filter(|(count, ..)| *count > 0);
        let texts =
            there.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
        texts.collect::<Vec<_>>().join(", ")
    }
}

impl AddAssign for FurtherAttempts {
    fn add_assign(&mut self, other: Self) {
        self.retries += other.retries;
        self.transparent_retries += other.transparent_retries;
        self.hedges += other.hedges;
    }
}

/// Calls to one server in an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInterval {
    /// Address of the server.
    pub server: String,
    /// Calls that ended, and whose last attempt went to it.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
}

impl ServerInterval {
    /// Adds calls to those of the same server.
    pub(crate) fn add(all: &mut Vec<Self>, more: &Self) {
        match all.iter_mut().find(|known| known.server == more.server) {
            Some(known) => {
                known.calls += more.calls;
                known.failed += more.failed;
            }
            None => all.push(more.clone()),
        }
    }
}
