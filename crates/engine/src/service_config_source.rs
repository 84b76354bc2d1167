//! Service configs in one of two forms: [`ServiceConfigSource`].

use thalweg_balance::service_config::{PolicyRegistry, ServiceConfig, ServiceConfigError};

/// A service config in one of two forms.
#[derive(Clone, Debug)]
pub enum ServiceConfigSource {
    /// JSON. It is parsed when the channel is created, or by the channel whose resolver has found it.
    Json(String),
    /// Made by its setters.
    Parsed(Box<ServiceConfig>),
}

impl ServiceConfigSource {
    pub(crate) fn read(&self, policies: &PolicyRegistry) -> Result<ServiceConfig, ServiceConfigError> {
        match self {
            Self::Json(json) => ServiceConfig::parse(json, policies),
            Self::Parsed(config) => Ok((**config).clone()),
        }
    }
}

impl From<&str> for ServiceConfigSource {
    fn from(json: &str) -> Self {
        Self::Json(json.to_owned())
    }
}

impl From<String> for ServiceConfigSource {
    fn from(json: String) -> Self {
        Self::Json(json)
    }
}

impl From<ServiceConfig> for ServiceConfigSource {
    fn from(config: ServiceConfig) -> Self {
        Self::Parsed(Box::new(config))
    }
}
