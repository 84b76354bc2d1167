//! `random_subsetting`: each client uses a random subset of the endpoints (gRFC A68).

#[cfg(test)]
mod tests;

use std::time::Instant;

use super::{Decision, EndpointView, Needs, Policy, random::seeded_hash};
use crate::endpoint::Endpoint;

/// Passes a random subset of the endpoints to a child policy.
///
/// An endpoint that is added or removed changes at most one of the subset (rendezvous hashing).
#[derive(Debug)]
pub struct RandomSubsetting {
    subset_size: usize,
    seed: u64,
    child: Box<dyn Policy>,
}

impl RandomSubsetting {
    /// Creates the policy. The seed determines the subset; a `subset_size` of 0 counts as 1.
    pub fn new(subset_size: u32, child: Box<dyn Policy>, seed: u64) -> Self {
        Self { subset_size: subset_size.max(1) as usize, seed, child }
    }
}

impl Policy for RandomSubsetting {
    fn name(&self) -> &'static str {
        "random_subsetting_experimental"
    }

    fn select(&mut self, mut resolved: Vec<Endpoint>) -> Vec<Endpoint> {
        if resolved.len() > self.subset_size {
            resolved.sort_by_cached_key(|endpoint| seeded_hash(endpoint, self.seed));
            resolved.truncate(self.subset_size);
        }
        self.child.select(resolved)
    }

    fn needs(&self) -> Needs {
        self.child.needs()
    }

    fn checks_health(&self) -> bool {
        self.child.checks_health()
    }

    fn hash_header(&self) -> Option<&str> {
        self.child.hash_header()
    }

    fn decide(&mut self, endpoints: &[EndpointView<'_>], now: Instant) -> Decision {
        self.child.decide(endpoints, now)
    }
}
