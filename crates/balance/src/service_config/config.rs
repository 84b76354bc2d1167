//! Service configs as a whole: [`ServiceConfig`].

use super::error::ServiceConfigError;
use super::field::{Field, Read};
use super::json::parse_json;
use super::method::{MethodConfig, MethodTable};
use super::policy::{self, PolicyRegistry};
use super::throttling::RetryThrottling;
use crate::policy::PolicyConfig;

/// A service config: parsed from JSON, or made by its setters.
///
/// ```
/// use std::time::Duration;
/// use thalweg_balance::policy::PolicyConfig;
/// use thalweg_balance::service_config::{MethodConfig, MethodName, PolicyRegistry, ServiceConfig};
///
/// let json = r#"{
///     "loadBalancingConfig": [{ "round_robin": {} }],
///     "methodConfig": [{ "name": [{ "service": "shop.Cart" }], "timeout": "1.5s" }]
/// }"#;
/// let parsed = ServiceConfig::parse(json, &PolicyRegistry::default())?;
///
/// let cart = MethodConfig::new([MethodName::service("shop.Cart")]).timeout(Duration::from_millis(1500));
/// let made = ServiceConfig::default().load_balancing(PolicyConfig::RoundRobin).methods([cart])?;
/// assert_eq!(parsed, made);
/// assert_eq!(made.method("shop.Cart", "Add").unwrap().timeout, Some(Duration::from_millis(1500)));
/// # Ok::<(), thalweg_balance::service_config::ServiceConfigError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServiceConfig {
    /// Balancing policy: the first of `loadBalancingConfig` that is supported.
    pub load_balancing: Option<PolicyConfig>,
    /// Throttling of retries and hedged attempts.
    pub retry_throttling: Option<RetryThrottling>,
    /// Service name for client-side health checking (gRFC A17); `None` turns it off.
    pub health_check: Option<String>,
    /// Maximum connections per endpoint (gRFC A105).
    pub max_connections_per_subchannel: Option<u32>,
    methods: MethodTable,
}

impl ServiceConfig {
    /// Parses a service config. `policies` are the application's own balancing policies.
    pub fn parse(json: &str, policies: &PolicyRegistry) -> Result<Self, ServiceConfigError> {
        Self::read(&Field::root(&parse_json(json)?), policies)
    }

    /// Sets the balancing policy.
    pub fn load_balancing(mut self, policy: PolicyConfig) -> Self {
        self.load_balancing = Some(policy);
        self
    }

    /// Sets the settings of methods.
    ///
    /// # Errors
    /// Fails if a name occurs twice, or has a method without a service.
    pub fn methods(
        mut self,
        methods: impl IntoIterator<Item = MethodConfig>,
    ) -> Result<Self, ServiceConfigError> {
        self.methods = MethodTable::new(methods.into_iter().collect())?;
        Ok(self)
    }

    /// Sets the throttling of retries and hedged attempts.
    pub fn retry_throttling(mut self, throttling: RetryThrottling) -> Self {
        self.retry_throttling = Some(throttling);
        self
    }

    /// Turns client-side health checking on (gRFC A17), with this service name.
    pub fn health_check(mut self, service: impl Into<String>) -> Self {
        self.health_check = Some(service.into());
        self
    }

    /// Sets the maximum connections per endpoint (gRFC A105).
    pub fn max_connections_per_subchannel(mut self, connections: u32) -> Self {
        self.max_connections_per_subchannel = Some(connections);
        self
    }

    /// Lowers the number of attempts of all methods to `max`. With less than 2, there are no retries and no hedging.
    pub fn limit_attempts(mut self, max: u32) -> Self {
        self.methods.limit_attempts(max);
        self
    }

    /// Returns the settings of a method: those of its name, else those of its service, else the default ones.
    pub fn method(&self, service: &str, method: &str) -> Option<&MethodConfig> {
        self.methods.get(service, method)
    }

    /// Returns the settings of all methods, in the order in which they were listed.
    pub fn method_configs(&self) -> &[MethodConfig] {
        self.methods.configs()
    }

    pub(super) fn read(config: &Field<'_>, policies: &PolicyRegistry) -> Read<Self> {
        let legacy = config.optional("loadBalancingPolicy", |name| policy::read_legacy(name, policies))?;
        let load_balancing =
            config.optional("loadBalancingConfig", |list| policy::read_list(list, policies))?;
        let methods = config.optional("methodConfig", |list| list.items(MethodConfig::read))?;
        let health_check =
            config.optional("healthCheckConfig", |health| health.optional("serviceName", Field::string))?;
        let max_connections = config.optional("connectionScaling", |scaling| {
            scaling.optional("maxConnectionsPerSubchannel", |number| number.integer(1..=u32::MAX))
        })?;
        Ok(Self {
            load_balancing: load_balancing.or(legacy),
            methods: MethodTable::new(methods.unwrap_or_default())?,
            retry_throttling: config.optional("retryThrottling", RetryThrottling::read)?,
            health_check: health_check.flatten(),
            max_connections_per_subchannel: max_connections.flatten(),
        })
    }
}
