//! Service configs that a resolver gives: [`Configuration`].

use std::sync::Arc;

use thalweg_balance::policy::PolicyConfig;
use thalweg_balance::service_config::{PolicyRegistry, Selected, ServiceConfigError, ServiceConfigSelection};

use crate::service_config_source::ServiceConfigSource;
use crate::service_settings::ServiceSettings;

/// How a channel uses the service configs of its resolver.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) selection: ServiceConfigSelection,
    /// The application's own policies.
    pub(crate) policies: PolicyRegistry,
    /// The policy without one of the service config.
    pub(crate) load_balancing: PolicyConfig,
    /// Maximum of `maxAttempts`.
    pub(crate) attempts_max: u32,
    /// Whether health checks are enabled.
    pub(crate) health_checks: bool,
    /// The settings that calls read.
    pub(crate) settings: Arc<ServiceSettings>,
}

/// The parts of a service config that are about endpoints.
#[derive(Debug)]
pub(super) struct Configured {
    pub(super) policy: PolicyConfig,
    /// Maximum connections per endpoint.
    pub(super) connections_max: Option<u32>,
    /// The service whose health is checked.
    pub(super) health_check: Option<String>,
    /// Why the resolver's service config was rejected, if it was.
    pub(super) rejected: Option<ServiceConfigError>,
}

impl Configuration {
    /// Takes the service config of a resolution: calls that start from now on have its settings.
    ///
    /// # Errors
    /// Returns the error of an invalid config, if there is no other to use.
    pub(super) fn resolved(
        &mut self,
        found: Option<Result<ServiceConfigSource, ServiceConfigError>>,
    ) -> Result<Configured, ServiceConfigError> {
        let found = found.map(|found| found.and_then(|source| source.read(&self.policies)));
        let found = found.map(|found| found.map(|config| config.limit_attempts(self.attempts_max)));
        let Selected { config, rejected } = self.selection.resolved(found)?;
        self.settings.apply(config);
        Ok(Configured {
            policy: config.load_balancing.as_ref().unwrap_or(&self.load_balancing).clone(),
            connections_max: config.max_connections_per_subchannel,
            health_check: config.health_check.clone().filter(|_| self.health_checks),
            rejected,
        })
    }
}
