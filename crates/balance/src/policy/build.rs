//! Creates policies from their settings.

use super::{
    LeastRequest, OutlierDetection, PickFirst, Policy, PolicyConfig, RandomSubsetting, RingHash, RoundRobin,
    WeightedRoundRobin,
};

impl PolicyConfig {
    /// Creates the policy. All its random choices derive from `seed`, which a channel keeps for its life.
    pub fn build(&self, seed: u64) -> Box<dyn Policy> {
        match self {
            Self::PickFirst(config) => Box::new(PickFirst::new(*config, seed)),
            Self::RoundRobin => Box::new(RoundRobin),
            Self::LeastRequest(config) => Box::new(LeastRequest::new(*config)),
            Self::WeightedRoundRobin(config) => Box::new(WeightedRoundRobin::new(config.clone())),
            Self::RingHash(config) => Box::new(RingHash::new(config.clone())),
            Self::RandomSubsetting(config) => Box::new(RandomSubsetting::new(config.clone(), seed)),
            Self::OutlierDetection(config) => Box::new(OutlierDetection::new(config.clone(), seed)),
            Self::Custom(factory) => factory.build(seed),
        }
    }
}
