//! `random_subsetting`: each client uses a random subset of the endpoints (gRFC A68).

use super::PolicyConfig;

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
