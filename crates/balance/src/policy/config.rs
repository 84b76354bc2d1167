//! Balancing policies as settings.

use std::fmt;
use std::sync::Arc;

use super::{
    LeastRequest, LeastRequestConfig, OutlierDetection, OutlierDetectionConfig, PickFirst, PickFirstConfig,
    Policy, RandomSubsetting, RandomSubsettingConfig, RingHash, RingHashConfig, RoundRobin,
    WeightedRoundRobin, WeightedRoundRobinConfig,
};

/// A balancing policy with its settings: an entry of `loadBalancingConfig`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PolicyConfig {
    /// One connection to the first of all addresses that works; the default.
    PickFirst(PickFirstConfig),
    /// The ready endpoints in turn.
    RoundRobin,
    /// The least loaded of a random sample.
    LeastRequest(LeastRequestConfig),
    /// The ready endpoints in proportion to weights from their load reports.
    WeightedRoundRobin(WeightedRoundRobinConfig),
    /// The endpoint that the call's hash selects.
    RingHash(RingHashConfig),
    /// A random subset of the endpoints, balanced by another policy.
    RandomSubsetting(RandomSubsettingConfig),
    /// Another policy, without the endpoints that fail more calls than others.
    OutlierDetection(OutlierDetectionConfig),
    /// A policy of the application. Two are equal if they are the same factory.
    Custom(Arc<dyn PolicyFactory>),
}

/// Creates a policy of the application, one per channel.
pub trait PolicyFactory: Send + Sync + fmt::Debug {
    /// Returns the policy's name in service configs.
    fn name(&self) -> &'static str;

    /// Creates the policy. All its random choices derive from `seed`, which a channel keeps for its life.
    fn build(&self, seed: u64) -> Box<dyn Policy>;
}

impl PolicyConfig {
    /// Creates the policy. All its random choices derive from `seed`, which a channel keeps for its life.
    pub fn build(&self, seed: u64) -> Box<dyn Policy> {
        match self {
            Self::PickFirst(config) => Box::new(PickFirst::new(*config, seed)),
            Self::RoundRobin => Box::new(RoundRobin),
            Self::LeastRequest(config) => Box::new(LeastRequest::new(*config)),
            Self::WeightedRoundRobin(config) => Box::new(WeightedRoundRobin::new(config.clone())),
            Self::RingHash(config) => Box::new(RingHash::new(config.clone())),
            Self::RandomSubsetting(config) => Box::new(RandomSubsetting::new(config, seed)),
            Self::OutlierDetection(config) => Box::new(OutlierDetection::new(config.clone(), seed)),
            Self::Custom(factory) => factory.build(seed),
        }
    }
}

impl PartialEq for dyn PolicyFactory {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self::PickFirst(PickFirstConfig::default())
    }
}
