//! Settings of methods: `methodConfig`, and the table in which a call finds its own.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use super::error::ServiceConfigError;
use super::field::{Field, Read, shorten};
use crate::retry::{HedgingPolicy, RetryPolicy};

/// Settings of some methods.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MethodConfig {
    /// The methods they apply to; none if it is empty.
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

impl MethodConfig {
    /// Creates settings of these methods, all unset.
    pub fn new(names: impl IntoIterator<Item = MethodName>) -> Self {
        Self { names: names.into_iter().collect(), ..Self::default() }
    }

    /// Sets the default of `wait_for_ready`.
    pub fn wait_for_ready(mut self, wait_for_ready: bool) -> Self {
        self.wait_for_ready = Some(wait_for_ready);
        self
    }

    /// Sets the maximum timeout.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the maximum size of a request message in bytes.
    pub fn max_request_message_bytes(mut self, bytes: usize) -> Self {
        self.max_request_message_bytes = Some(bytes);
        self
    }

    /// Sets the maximum size of a response message in bytes.
    pub fn max_response_message_bytes(mut self, bytes: usize) -> Self {
        self.max_response_message_bytes = Some(bytes);
        self
    }

    /// Sets the policy for retries; replaces hedging.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.attempts = Some(AttemptPolicy::Retry(policy));
        self
    }

    /// Sets the policy for hedging; replaces retries.
    pub fn hedging(mut self, policy: HedgingPolicy) -> Self {
        self.attempts = Some(AttemptPolicy::Hedging(policy));
        self
    }

    pub(super) fn read(config: &Field<'_>) -> Read<Self> {
        let retry = config.optional("retryPolicy", read_retry)?;
        let hedging = config.optional("hedgingPolicy", read_hedging)?;
        let attempts = match (retry, hedging) {
            (Some(_), Some(_)) => return Err(config.wrong_for("retryPolicy or hedgingPolicy", "both")),
            (retry, hedging) => retry.map(AttemptPolicy::Retry).or(hedging.map(AttemptPolicy::Hedging)),
        };
        let bytes = |size: &Field<'_>| size.integer(0..=u32::MAX).map(|bytes| bytes as usize);
        Ok(Self {
            names: config.optional("name", |names| names.items(MethodName::read))?.unwrap_or_default(),
            wait_for_ready: config.optional("waitForReady", Field::bool)?,
            timeout: config.optional("timeout", Field::duration)?,
            max_request_message_bytes: config.optional("maxRequestMessageBytes", bytes)?,
            max_response_message_bytes: config.optional("maxResponseMessageBytes", bytes)?,
            attempts,
        })
    }
}

impl MethodName {
    /// Creates the name of one method of a service.
    pub fn new(service: impl Into<String>, method: impl Into<String>) -> Self {
        Self { service: service.into(), method: method.into() }
    }

    /// Creates the name of all methods of a service.
    pub fn service(service: impl Into<String>) -> Self {
        Self::new(service, "")
    }

    /// Creates the name of all methods of all services.
    pub fn all() -> Self {
        Self::default()
    }

    /// Returns the name as a service config has it.
    fn to_json(&self) -> String {
        let part = |(key, name): (&str, &String)| format!("\"{key}\": {}", Value::from(name.as_str()));
        let parts = [("service", &self.service), ("method", &self.method)].into_iter();
        let parts: Vec<String> = parts.filter(|(_, name)| !name.is_empty()).map(part).collect();
        if parts.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", parts.join(", ")) }
    }

    fn read(name: &Field<'_>) -> Read<Self> {
        let part = |part| Ok(name.optional(part, Field::string)?.unwrap_or_default());
        Ok(Self { service: part("service")?, method: part("method")? })
    }
}

/// Reads a `retryPolicy` (gRFC A6).
fn read_retry(policy: &Field<'_>) -> Read<RetryPolicy> {
    Ok(RetryPolicy {
        max_attempts: policy.required("maxAttempts", read_max_attempts)?,
        initial_backoff: policy.required("initialBackoff", Field::positive_duration)?,
        max_backoff: policy.required("maxBackoff", Field::positive_duration)?,
        backoff_multiplier: policy.required("backoffMultiplier", Field::positive)?,
        retryable_codes: policy.required("retryableStatusCodes", |codes| {
            let set = codes.codes()?;
            if set.is_empty() { Err(codes.wrong("a list of at least one status code")) } else { Ok(set) }
        })?,
    })
}

/// Reads a `hedgingPolicy` (gRFC A6).
fn read_hedging(policy: &Field<'_>) -> Read<HedgingPolicy> {
    Ok(HedgingPolicy {
        max_attempts: policy.required("maxAttempts", read_max_attempts)?,
        hedging_delay: policy.optional("hedgingDelay", Field::duration)?.unwrap_or_default(),
        non_fatal_codes: policy.optional("nonFatalStatusCodes", Field::codes)?.unwrap_or_default(),
    })
}

fn read_max_attempts(attempts: &Field<'_>) -> Read<u32> {
    attempts.integer(2..=u32::MAX)
}

/// The settings of all methods, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MethodTable {
    configs: Vec<MethodConfig>,
    /// Positions in `configs`, by service and method. Empty names are wildcards, as in [`MethodName`].
    positions: HashMap<String, HashMap<String, usize>>,
}

impl MethodTable {
    /// Creates the table. Each name may occur once, and a method needs a service.
    pub(super) fn new(configs: Vec<MethodConfig>) -> Read<Self> {
        let mut positions: HashMap<String, HashMap<String, usize>> = HashMap::new();
        for (at, config) in configs.iter().enumerate() {
            for (name_at, name) in config.names.iter().enumerate() {
                let wrong = |expected: Cow<'static, str>| ServiceConfigError::Field {
                    field: format!("methodConfig[{at}].name[{name_at}]"),
                    expected,
                    found: shorten(&name.to_json()),
                };
                if name.service.is_empty() && !name.method.is_empty() {
                    return Err(wrong("a method with a service".into()));
                }
                let methods = positions.entry(name.service.clone()).or_default();
                if let Some(first) = methods.insert(name.method.clone(), at) {
                    let hint = format!("a name that occurs once (methodConfig[{first}] has it, too)");
                    return Err(wrong(hint.into()));
                }
            }
        }
        Ok(Self { configs, positions })
    }

    /// See [`ServiceConfig::limit_attempts`](super::ServiceConfig::limit_attempts).
    pub(super) fn limit_attempts(&mut self, max: u32) {
        for config in &mut self.configs {
            match &mut config.attempts {
                Some(_) if max < 2 => config.attempts = None,
                Some(AttemptPolicy::Retry(policy)) => policy.max_attempts = policy.max_attempts.min(max),
                Some(AttemptPolicy::Hedging(policy)) => policy.max_attempts = policy.max_attempts.min(max),
                None => {}
            }
        }
    }

    pub(super) fn configs(&self) -> &[MethodConfig] {
        &self.configs
    }

    /// Returns the settings of the most specific name that matches.
    pub(super) fn get(&self, service: &str, method: &str) -> Option<&MethodConfig> {
        let position = |service, method| self.positions.get(service)?.get(method);
        let found = position(service, method).or_else(|| position(service, "")).or_else(|| position("", ""));
        found.map(|&at| &self.configs[at])
    }
}
