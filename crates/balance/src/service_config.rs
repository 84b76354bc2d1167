//! Service configs: settings, in JSON, from a service's operators for its clients.

use std::time::Duration;

pub use crate::policy::PolicyConfig;
use crate::retry::{HedgingPolicy, RetryPolicy};

/// A parsed service config.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServiceConfig {
    /// Balancing policy: the first of `loadBalancingConfig` that is supported.
    pub load_balancing: Option<PolicyConfig>,
    /// Settings of methods.
    pub methods: Vec<MethodConfig>,
    /// Throttling of retries and hedged attempts.
    pub retry_throttling: Option<RetryThrottling>,
    /// Service name for client-side health checking (gRFC A17); `None` turns it off.
    pub health_check: Option<String>,
    /// Maximum connections per endpoint (gRFC A105).
    pub max_connections_per_subchannel: Option<u32>,
}

/// Settings of some methods.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MethodConfig {
    /// The methods they apply to.
    pub names: Vec<MethodName>,
    /// Default of `wait_for_ready`.
    pub wait_for_ready: Option<bool>,
    /// Maximum timeout: the lower one of this and the call's applies.
    pub timeout: Option<Duration>,
    /// Maximum size of a request message in bytes.
    pub max_request_message_bytes: Option<usize>,
    /// Maximum size of a response message in bytes.
    pub max_response_message_bytes: Option<usize>,
    /// Retries or hedging.
    pub attempts: Option<AttemptPolicy>,
}

/// Methods by name: one method, all of a service, or all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MethodName {
    /// Full name of the service; empty for all methods of all services.
    pub service: String,
    /// Name of the method; empty for all of the service.
    pub method: String,
}

/// A method's policy for further attempts.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptPolicy {
    /// Sequential attempts.
    Retry(RetryPolicy),
    /// Concurrent attempts.
    Hedging(HedgingPolicy),
}

/// Throttling of retries (gRFC A6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryThrottling {
    /// Size of the token bucket: 1 to 1000.
    pub max_tokens: u32,
    /// Tokens added per success, in thousandths; at least 1.
    pub token_ratio_millis: u32,
}
