//! `random_subsetting`: each client uses a random subset of the endpoints (gRFC A68).

#[cfg(test)]
mod tests;

use std::time::Instant;

use super::{Decision, EndpointView, Needs, Policy, PolicyConfig, mix, seeded_hash};
use crate::endpoint::Endpoint;

/// Settings of `random_subsetting`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RandomSubsettingConfig {
    /// Maximum number of endpoints in use; at least 1.
    pub subset_size: u32,
    /// Policy that balances over the subset.
    pub child_policy: Box<PolicyConfig>,
}

impl RandomSubsettingConfig {
    /// Creates the settings of a policy that passes `subset_size` endpoints to `child`; 0 counts as 1.
    pub fn new(subset_size: u32, child: PolicyConfig) -> Self {
        Self { subset_size: subset_size.max(1), child_policy: Box::new(child) }
    }
}

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
    /// Creates the policy and its child. The seed determines the subset.
    pub fn new(config: &RandomSubsettingConfig, seed: u64) -> Self {
        let subset_size = config.subset_size.max(1) as usize;
        Self { subset_size, seed, child: config.child_policy.build(mix(seed)) }
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

    fn hash_header(&self) -> Option<&str> {
        self.child.hash_header()
    }

    fn decide(&mut self, endpoints: &[EndpointView<'_>], now: Instant) -> Decision {
        self.child.decide(endpoints, now)
    }
}
