//! Balancing policies as settings.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{
    FailurePercentageEjection, LeastRequestConfig, PickFirstConfig, Policy, RingHashConfig, RoundRobin,
    SuccessRateEjection, WeightedRoundRobinConfig,
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
    /// A policy of the application, as in the example of [`PolicyFactory`]. Two are equal if they are the same factory.
    Custom(Arc<dyn PolicyFactory>),
}

/// Settings of `random_subsetting`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RandomSubsettingConfig {
    /// Maximum number of endpoints in use; at least 1.
    pub subset_size: u32,
    /// Policy that balances over the subset.
    pub child_policy: Box<PolicyConfig>,
}

/// Settings of `outlier_detection`. It counts calls only if at least one algorithm is set; none is by default.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OutlierDetectionConfig {
    /// Interval at which endpoints are compared, ejected and returned: at least 1 ms, 10 s by default.
    pub interval: Duration,
    /// Time of an endpoint's first ejection; the nth in a row takes n times as long. 30 s by default.
    pub base_ejection_time: Duration,
    /// Maximum time of an ejection; 300 s by default. If `base_ejection_time` is longer, it applies instead.
    pub max_ejection_time: Duration,
    /// Percentage of ejected endpoints at which no more are ejected; 10 by default.
    pub max_ejection_percent: u32,
    /// Ejection of endpoints whose success rate is an outlier.
    pub success_rate_ejection: Option<SuccessRateEjection>,
    /// Ejection of endpoints that fail too many calls, whatever the others do.
    pub failure_percentage_ejection: Option<FailurePercentageEjection>,
    /// Policy that balances over the endpoints.
    pub child_policy: Box<PolicyConfig>,
}

/// Creates a policy of the application, one per channel. It is also the type of the policy's settings.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Instant;
/// use thalweg_balance::policy::{
///     Decision, EndpointView, Pick, PickArgs, Picker, Policy, PolicyConfig, PolicyFactory,
/// };
///
/// /// Prefers servers in one zone.
/// #[derive(Clone, Debug)]
/// struct Nearest {
///     zone: String,
/// }
///
/// impl PolicyFactory for Nearest {
///     fn name(&self) -> &'static str {
///         "nearest"
///     }
///
///     fn build(&self, _seed: u64) -> Box<dyn Policy> {
///         Box::new(self.clone())
///     }
/// }
///
/// impl Policy for Nearest {
///     fn name(&self) -> &'static str {
///         "nearest"
///     }
///
///     fn decide(&mut self, servers: &[EndpointView<'_>], _now: Instant) -> Decision {
///         Decision::connecting_all(servers, |ready| {
///             let is_near = |&at: &usize| servers[at].endpoint.locality.zone == self.zone;
///             let near: Vec<usize> = ready.iter().copied().filter(is_near).collect();
///             Arc::new(InTurn(if near.is_empty() { ready } else { near }))
///         })
///     }
/// }
///
/// /// Positions of servers, which take calls in turn.
/// #[derive(Debug)]
/// struct InTurn(Vec<usize>);
///
/// impl Picker for InTurn {
///     fn pick(&self, call: &PickArgs<'_>) -> Pick {
///         Pick::Endpoint(self.0[call.turn as usize % self.0.len()])
///     }
/// }
///
/// let policy = PolicyConfig::Custom(Arc::new(Nearest { zone: "europe-west1-b".to_owned() }));
/// ```
pub trait PolicyFactory: Any + Send + Sync + fmt::Debug {
    /// Returns the policy's name in service configs.
    fn name(&self) -> &'static str;

    /// Creates the policy. All its random choices derive from `seed`, which a channel keeps for its life.
    fn build(&self, seed: u64) -> Box<dyn Policy>;
}

impl PartialEq for dyn PolicyFactory {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl PolicyConfig {
    /// Returns the settings for [`Policy::reconfigure`].
    pub(super) fn settings(&self) -> &dyn Any {
        match self {
            Self::PickFirst(config) => config,
            Self::RoundRobin => &RoundRobin,
            Self::LeastRequest(config) => config,
            Self::WeightedRoundRobin(config) => config,
            Self::RingHash(config) => config,
            Self::RandomSubsetting(config) => config,
            Self::OutlierDetection(config) => config,
            Self::Custom(factory) => &**factory,
        }
    }
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self::PickFirst(PickFirstConfig::default())
    }
}

impl PolicyConfig {
    /// Names of the built-in policies in service configs.
    pub const NAMES: [&'static str; 7] = [
        "pick_first",
        "round_robin",
        "weighted_round_robin",
        "least_request",
        "ring_hash",
        "random_subsetting",
        "outlier_detection",
    ];
}

impl RandomSubsettingConfig {
    /// Creates the settings of a policy that passes `subset_size` endpoints to `child`; 0 counts as 1.
    pub fn new(subset_size: u32, child: PolicyConfig) -> Self {
        Self { subset_size: subset_size.max(1), child_policy: Box::new(child) }
    }
}

impl OutlierDetectionConfig {
    /// Creates settings without an algorithm, around the policy `child`.
    pub fn new(child: PolicyConfig) -> Self {
        Self {
            interval: Duration::from_secs(10),
            base_ejection_time: Duration::from_secs(30),
            max_ejection_time: Duration::from_secs(300),
            max_ejection_percent: 10,
            success_rate_ejection: None,
            failure_percentage_ejection: None,
            child_policy: Box::new(child),
        }
    }

    /// Sets the interval at which endpoints are compared; less than 1 ms counts as 1 ms.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval.max(INTERVAL_MIN);
        self
    }

    /// Sets the time of an endpoint's first ejection.
    pub fn base_ejection_time(mut self, time: Duration) -> Self {
        self.base_ejection_time = time;
        self
    }

    /// Sets the maximum time of an ejection.
    pub fn max_ejection_time(mut self, time: Duration) -> Self {
        self.max_ejection_time = time;
        self
    }

    /// Sets the percentage of ejected endpoints at which no more are ejected.
    pub fn max_ejection_percent(mut self, percent: u32) -> Self {
        self.max_ejection_percent = percent.min(100);
        self
    }

    /// Turns on ejection by the rate of successes.
    pub fn success_rate_ejection(mut self, ejection: SuccessRateEjection) -> Self {
        self.success_rate_ejection = Some(ejection);
        self
    }

    /// Turns on ejection by the percentage of failures.
    pub fn failure_percentage_ejection(mut self, ejection: FailurePercentageEjection) -> Self {
        self.failure_percentage_ejection = Some(ejection);
        self
    }
}

/// Shorter intervals would wake the channel in a loop.
pub(super) const INTERVAL_MIN: Duration = Duration::from_millis(1);
