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
    #[error("service config{}: expected {expected}, found {found}", at(field))]
    Field {
        /// Path of the field, such as `methodConfig[0].timeout`; empty for the whole.
        field: String,
        /// The expected value.
        expected: Cow<'static, str>,
        /// The value found, shortened; `nothing` if it is missing or null.
        found: String,
    },
    /// None of the policies is supported.
    #[error("service config{}: expected a supported policy, found {found}{hint}", at(field))]
    UnsupportedPolicy {
        /// Path of the list or name.
        field: String,
        /// The policies found, shortened.
        found: String,
        /// End of the message: a similar policy, or else all that are supported.
        hint: String,
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

/// Returns the place of an error for its message.
fn at(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!(", {field}") }
}
