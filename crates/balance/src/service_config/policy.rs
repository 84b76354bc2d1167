//! Balancing policies: `loadBalancingConfig` and its legacy form, `loadBalancingPolicy`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::error::ServiceConfigError;
use super::field::{Field, Read, shorten};
use super::similar::most_similar;
use crate::policy::{
    FailurePercentageEjection, LeastRequestConfig, OutlierDetectionConfig, PickFirstConfig, PolicyConfig,
    PolicyFactory, RING_SIZE_MAX, RandomSubsettingConfig, RingHashConfig, SuccessRateEjection,
    WeightedRoundRobinConfig,
};

/// Balancing policies of the application, by their names in service configs.
///
/// ```
/// use thalweg_balance::service_config::{PolicyRegistry, ServiceConfig};
///
/// let policies = PolicyRegistry::default().register("nearest", |_config| Err("no zone is set".into()));
/// let error = ServiceConfig::parse(r#"{ "loadBalancingConfig": [{ "nearest": {} }] }"#, &policies).unwrap_err();
/// assert_eq!(error.to_string(), "service config, loadBalancingConfig[0].nearest: no zone is set");
/// ```
#[derive(Clone, Default)]
pub struct PolicyRegistry(HashMap<String, Arc<ReadPolicy>>);

type ReadPolicy = dyn Fn(&Value) -> Result<Arc<dyn PolicyFactory>, String> + Send + Sync;

impl PolicyRegistry {
    /// Registers a policy. It replaces one of the same name, including one of this crate.
    ///
    /// `read` gets the policy's config, which is an object, and returns the factory, or the text of an error. It should
    /// return the same factory for the same config: a channel creates its policy again when the factory differs.
    pub fn register<R>(mut self, name: impl Into<String>, read: R) -> Self
    where
        R: Fn(&Value) -> Result<Arc<dyn PolicyFactory>, String> + Send + Sync + 'static,
    {
        self.0.insert(name.into(), Arc::new(read));
        self
    }
}

impl fmt::Debug for PolicyRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Reads the first policy of a list that is supported. Those after it are not validated.
pub(super) fn read_list(list: &Field<'_>, policies: &PolicyRegistry) -> Read<PolicyConfig> {
    let mut selected = None;
    let mut unsupported = Vec::new();
    list.items(|item| {
        if selected.is_none() {
            let mut names = item.object()?.keys();
            let (Some(name), None) = (names.next(), names.next()) else {
                return Err(item.wrong("an object with one policy"));
            };
            selected = item.required(name, |config| read_policy(name, config, policies))?;
            unsupported.push(name.as_str());
        }
        Ok(())
    })?;
    selected.ok_or_else(|| unsupported_policies(list, &unsupported, policies))
}

/// Creates the error for policies of which none is supported.
fn unsupported_policies(field: &Field<'_>, names: &[&str], policies: &PolicyRegistry) -> ServiceConfigError {
    let own = policies.0.keys().map(String::as_str).filter(|own| !PolicyConfig::NAMES.contains(own));
    let mut own: Vec<&str> = own.collect();
    own.sort_unstable();
    let known = [&PolicyConfig::NAMES[..], &own].concat();
    let similar = names.iter().find_map(|name| most_similar(name, known.iter().copied()));
    let hint = match similar {
        Some(similar) => format!("; did you mean `{similar}`?"),
        None => format!("; available: {}", known.join(", ")),
    };
    let found = if names.is_empty() { "no policy".to_owned() } else { shorten(&names.join(", ")) };
    ServiceConfigError::UnsupportedPolicy { field: field.to_string(), found, hint }
}

/// Reads the name of a policy, in any case, which gets an empty config.
pub(super) fn read_legacy(name: &Field<'_>, policies: &PolicyRegistry) -> Read<PolicyConfig> {
    let given = name.string()?;
    let policy = given.to_ascii_lowercase();
    let config = Value::Object(serde_json::Map::new());
    let read = read_policy(&policy, &name.with_value(&config), policies)?;
    read.ok_or_else(|| unsupported_policies(name, &[&given], policies))
}

/// Reads the config of a policy; `None` if it is not supported.
fn read_policy(name: &str, config: &Field<'_>, policies: &PolicyRegistry) -> Read<Option<PolicyConfig>> {
    if let Some(read) = policies.0.get(name) {
        config.object()?;
        let factory = read(config.value());
        let factory =
            factory.map_err(|reason| ServiceConfigError::Policy { field: config.to_string(), reason })?;
        return Ok(Some(PolicyConfig::Custom(factory)));
    }
    // The suffix belongs to the names of gRPC's other implementations.
    Ok(Some(match name {
        "pick_first" => PolicyConfig::PickFirst(pick_first(config)?),
        "round_robin" => config.empty_object().map(|()| PolicyConfig::RoundRobin)?,
        "weighted_round_robin" => PolicyConfig::WeightedRoundRobin(weighted_round_robin(config)?),
        "least_request" | "least_request_experimental" => PolicyConfig::LeastRequest(least_request(config)?),
        "ring_hash" | "ring_hash_experimental" => PolicyConfig::RingHash(ring_hash(config)?),
        "random_subsetting" | "random_subsetting_experimental" => {
            let size = config.required("subsetSize", |size| size.integer(1..=u32::MAX))?;
            PolicyConfig::RandomSubsetting(RandomSubsettingConfig::new(size, child_policy(config, policies)?))
        }
        "outlier_detection" | "outlier_detection_experimental" => {
            PolicyConfig::OutlierDetection(outlier_detection(config, child_policy(config, policies)?)?)
        }
        _ => return Ok(None),
    }))
}

fn child_policy(config: &Field<'_>, policies: &PolicyRegistry) -> Read<PolicyConfig> {
    config.required("childPolicy", |list| read_list(list, policies))
}

/// Reads the config of `pick_first` (gRFC A62).
fn pick_first(config: &Field<'_>) -> Read<PickFirstConfig> {
    type Config = PickFirstConfig;
    config.set(Config::default(), "shuffleAddressList", Field::bool, Config::shuffle_address_list)
}

/// Reads the config of `weighted_round_robin` (gRFC A58).
fn weighted_round_robin(config: &Field<'_>) -> Read<WeightedRoundRobinConfig> {
    type Config = WeightedRoundRobinConfig;
    let read = Config::default();
    let read = config.set(read, "enableOobLoadReport", Field::bool, Config::enable_oob_load_report)?;
    let read = config.set(read, "oobReportingPeriod", Field::duration, Config::oob_reporting_period)?;
    let read = config.set(read, "blackoutPeriod", Field::duration, Config::blackout_period)?;
    let read =
        config.set(read, "weightExpirationPeriod", Field::duration, Config::weight_expiration_period)?;
    let read = config.set(read, "weightUpdatePeriod", Field::duration, Config::weight_update_period)?;
    config.set(read, "errorUtilizationPenalty", Field::non_negative, Config::error_utilization_penalty)
}

/// Reads the config of `least_request` (gRFC A48).
fn least_request(config: &Field<'_>) -> Read<LeastRequestConfig> {
    let count = |count: &Field<'_>| count.integer(2..=u32::MAX);
    config.set(LeastRequestConfig::default(), "choiceCount", count, LeastRequestConfig::choice_count)
}

/// Reads the config of `ring_hash` (gRFCs A42 and A76). Sizes of 0 are the same as missing ones, as in grpc-go.
fn ring_hash(config: &Field<'_>) -> Read<RingHashConfig> {
    let mut read = RingHashConfig::default();
    let size = |size: &Field<'_>| size.integer(0..=RING_SIZE_MAX as u32).map(u64::from);
    let read_size = |name, default: &mut u64| -> Read<()> {
        let size = config.optional(name, size)?.filter(|&size| size > 0);
        *default = size.unwrap_or(*default);
        Ok(())
    };
    read_size("minRingSize", &mut read.min_ring_size)?;
    read_size("maxRingSize", &mut read.max_ring_size)?;
    let (min, max) = (read.min_ring_size, read.max_ring_size);
    if min > max {
        let wrong =
            |size: &Field<'_>| size.wrong_for(format!("at most maxRingSize ({max})"), &min.to_string());
        return config.required("minRingSize", |size| Err(wrong(size)));
    }
    config.set(read, "requestHashHeader", header_name, |read, name| match name.as_str() {
        "" => read,
        _ => read.request_hash_header(name),
    })
}

/// Reads the name of a request header whose values are ASCII, in lower case; or an empty string.
fn header_name(name: &Field<'_>) -> Read<String> {
    let text = name.string()?.to_ascii_lowercase();
    let valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    if text.bytes().all(valid) && !text.ends_with("-bin") {
        Ok(text)
    } else {
        Err(name.wrong("the name of a header that is not binary"))
    }
}

/// Reads the config of `outlier_detection` (gRFC A50), without its child policy.
fn outlier_detection(config: &Field<'_>, child: PolicyConfig) -> Read<OutlierDetectionConfig> {
    type Config = OutlierDetectionConfig;
    let read = Config::new(child);
    let read = config.set(read, "interval", Field::duration, Config::interval)?;
    let read = config.set(read, "baseEjectionTime", Field::duration, Config::base_ejection_time)?;
    let read = config.set(read, "maxEjectionTime", Field::duration, Config::max_ejection_time)?;
    let read = config.set(read, "maxEjectionPercent", percent, Config::max_ejection_percent)?;
    let read = config.set(read, "successRateEjection", success_rate, Config::success_rate_ejection)?;
    config.set(read, "failurePercentageEjection", failure_percentage, Config::failure_percentage_ejection)
}

fn success_rate(ejection: &Field<'_>) -> Read<SuccessRateEjection> {
    type Ejection = SuccessRateEjection;
    let read = Ejection::default();
    let read = ejection.set(read, "stdevFactor", number, Ejection::stdev_factor)?;
    let read = ejection.set(read, "enforcementPercentage", percent, Ejection::enforcement_percentage)?;
    let read = ejection.set(read, "minimumHosts", number, Ejection::minimum_hosts)?;
    ejection.set(read, "requestVolume", number, Ejection::request_volume)
}

fn failure_percentage(ejection: &Field<'_>) -> Read<FailurePercentageEjection> {
    type Ejection = FailurePercentageEjection;
    let read = Ejection::default();
    let read = ejection.set(read, "threshold", percent, Ejection::threshold)?;
    let read = ejection.set(read, "enforcementPercentage", percent, Ejection::enforcement_percentage)?;
    let read = ejection.set(read, "minimumHosts", number, Ejection::minimum_hosts)?;
    ejection.set(read, "requestVolume", number, Ejection::request_volume)
}

fn percent(percent: &Field<'_>) -> Read<u32> {
    percent.integer(0..=100)
}

fn number(number: &Field<'_>) -> Read<u32> {
    number.integer(0..=u32::MAX)
}
