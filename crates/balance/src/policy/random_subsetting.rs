//! `random_subsetting`: each client uses a random subset of the endpoints (gRFC A68).

#[cfg(test)]
mod tests;

use std::any::Any;
use std::time::Instant;

use super::{
    Decision, EndpointView, GracefulSwitch, Needs, Policy, RandomSubsettingConfig, mix, random::seeded_hash,
};
use crate::endpoint::Endpoint;

/// Passes a random subset of the endpoints to a child policy.
///
/// An endpoint that is added or removed changes at most one of the subset (rendezvous hashing).
#[derive(Debug)]
pub struct RandomSubsetting {
    subset_size: usize,
    seed: u64,
    child: GracefulSwitch,
}

impl RandomSubsetting {
    /// Creates the policy. The seed determines the subset; a `subset_size` of 0 counts as 1.
    pub fn new(config: RandomSubsettingConfig, seed: u64) -> Self {
        let subset_size = config.subset_size.max(1) as usize;
        Self { subset_size, seed, child: GracefulSwitch::new(*config.child_policy, mix(seed)) }
    }
}

impl Policy for RandomSubsetting {
    fn name(&self) -> &'static str {
        "random_subsetting_experimental"
    }

    fn reconfigure(&mut self, settings: &dyn Any) -> bool {
        let Some(config) = settings.downcast_ref::<RandomSubsettingConfig>() else { return false };
        self.subset_size = config.subset_size.max(1) as usize;
        self.child.update(&config.child_policy);
        true
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
