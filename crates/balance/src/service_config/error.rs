//! Errors of service configs.

use std::borrow::Cow;

/// An invalid service config.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceConfigError {
    /// The text is not JSON.
    #[error("the service config is not JSON: {0}")]
    Syntax(String),
    /// A field is missing, or has an invalid type or value.
    #[error("service config, {field}: expected {expected}, found {found}")]
    Field {
        /// Path of the field, such as `methodConfig[0].timeout`.
        field: String,
        /// The expected value.
        expected: Cow<'static, str>,
        /// The value found, shortened; `nothing` if it is missing or null.
        found: String,
    },
    /// A policy of the application rejects its config.
    #[error("service config, {field}: {reason}")]
    Policy {
        /// Path of the config, such as `loadBalancingConfig[0].my_policy`.
        field: String,
        /// The error text of the policy.
        reason: String,
    },
}
