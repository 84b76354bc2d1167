//! Options of channels to several servers, and through proxies: the balancing policy, and a service config.

use std::fs;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use thalweg::channel::policy::{
    FailurePercentageEjection, LeastRequestConfig, OutlierDetectionConfig, PickFirstConfig, PolicyConfig,
    RandomSubsettingConfig, RingHashConfig, SuccessRateEjection, WeightedRoundRobinConfig,
};
use thalweg::channel::{
    ChannelBuilder, PolicyRegistry, ProxyConfig, ProxyError, ServiceConfig, ServiceConfigError, UnknownField,
};
use thalweg_dynamic::texts::BYTE_ORDER_MARK;

use crate::failure::Failure;
use crate::terminal;

/// Servers that `random_subsetting` uses. gRPC has no default.
const SUBSET_SIZE: u32 = 20;

type Build = fn() -> PolicyConfig;

/// Balancing policies, with gRPC's defaults.
const POLICIES: [(&str, &str, Build); 7] = [
    ("pick_first", "The first server that works", || PolicyConfig::PickFirst(PickFirstConfig::default())),
    ("round_robin", "All servers in turn", || PolicyConfig::RoundRobin),
    ("least_request", "The less loaded of two random servers", || {
        PolicyConfig::LeastRequest(LeastRequestConfig::default())
    }),
    ("weighted_round_robin", "By the load that servers report; until then in turn", || {
        PolicyConfig::WeightedRoundRobin(WeightedRoundRobinConfig::default())
    }),
    ("ring_hash", "By the hash of the call; calls without one at random", || {
        PolicyConfig::RingHash(RingHashConfig::default())
    }),
    ("random_subsetting", "In turn, over 20 random servers", || {
        PolicyConfig::RandomSubsetting(RandomSubsettingConfig::new(SUBSET_SIZE, PolicyConfig::RoundRobin))
    }),
    ("outlier_detection", "In turn, without servers that fail more calls than others", || {
        let config = OutlierDetectionConfig::new(PolicyConfig::RoundRobin)
            .success_rate_ejection(SuccessRateEjection::default())
            .failure_percentage_ejection(FailurePercentageEjection::default());
        PolicyConfig::OutlierDetection(config)
    }),
];

/// Options of channels to several servers, and through proxies.
#[derive(Clone, Debug, Args)]
pub(crate) struct BalancingArgs {
    /// Balance calls over the target's servers [default: pick_first]
    ///
    /// Settings of a policy need --service-config.
    #[arg(help_heading = "Connection", long, value_name = "POLICY", value_parser = policy())]
    lb: Option<PolicyConfig>,

    /// gRPC service config: JSON, or @FILE
    ///
    /// Policy and its settings, timeouts and retries of methods, limits.
    #[arg(help_heading = "Connection", long, value_name = "JSON")]
    service_config: Option<String>,

    /// Connect through this proxy: http://, https:// or socks5://[USER:PASSWORD@]HOST:PORT, or "env" [default: none]
    ///
    /// With "env" it is the one in https_proxy, except for hosts in no_proxy. Unlike other gRPC clients, the command
    /// uses no proxy unless asked to: figures must not depend on the environment.
    #[arg(help_heading = "Connection", long, value_name = "URL", value_parser = proxy)]
    proxy: Option<ProxyConfig>,
}

/// Valid options of channels to several servers.
pub(crate) struct Balancing {
    policy: Option<PolicyConfig>,
    service_config: Option<ServiceConfig>,
    /// Fields of the service config that have no meaning.
    unknown: Vec<UnknownField>,
    proxy: ProxyConfig,
}

impl BalancingArgs {
    /// Reads and checks the service config.
    pub(crate) fn read(&self) -> Result<Balancing, Failure> {
        let balancing = self.checked()?;
        for unknown in &balancing.unknown {
            terminal::say(&format!("warning: {unknown}"));
        }
        Ok(balancing)
    }

    /// Reads and checks the service config, without warnings.
    pub(crate) fn checked(&self) -> Result<Balancing, Failure> {
        let json = self.service_config.as_deref().map(text).transpose()?;
        let (service_config, unknown) = json.as_deref().map(|json| self.parse(json)).transpose()?.unzip();
        if self.lb.is_some() && service_config.as_ref().is_some_and(|config| config.load_balancing.is_some())
        {
            return Err(Failure::bad_arguments("--service-config also has a policy; leave out --lb"));
        }
        let proxy = self.proxy.clone().unwrap_or_default();
        let unknown = unknown.unwrap_or_default();
        Ok(Balancing { policy: self.lb.clone(), service_config, unknown, proxy })
    }

    /// Parses a service config. Also returns its fields that have no meaning.
    fn parse(&self, json: &str) -> Result<(ServiceConfig, Vec<UnknownField>), Failure> {
        let own = PolicyRegistry::default();
        let config =
            ServiceConfig::parse(json, &own).map_err(|error| match (error, &self.service_config) {
                (error @ ServiceConfigError::Syntax(_), Some(given)) if is_file_name(given) => {
                    Failure::bad_arguments(format!("{error}; to read a file, use --service-config @{given}"))
                }
                (error, _) => Failure::bad_arguments(error),
            })?;
        let unknown = ServiceConfig::unknown_fields(json, &own).map_err(Failure::bad_arguments)?;
        Ok((config, unknown))
    }
}

impl Balancing {
    pub(crate) fn applied(&self, mut channel: ChannelBuilder) -> ChannelBuilder {
        if let Some(policy) = &self.policy {
            channel = channel.load_balancing(policy.clone());
        }
        if let Some(config) = &self.service_config {
            channel = channel.service_config(config.clone());
        }
        channel.proxy(self.proxy.clone())
    }
}

fn proxy(text: &str) -> Result<ProxyConfig, ProxyError> {
    match text {
        "env" => Ok(ProxyConfig::Environment),
        url => url.parse().map(ProxyConfig::Through),
    }
}

fn policy() -> impl TypedValueParser<Value = PolicyConfig> {
    let names = POLICIES.map(|(name, about, _)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(names).try_map(|name| {
        let found = POLICIES.iter().find(|(known, ..)| *known == name);
        found.map(|(.., build)| build()).ok_or("unknown policy")
    })
}

/// Returns whether a text that is not JSON is probably the name of a file.
fn is_file_name(given: &str) -> bool {
    !given.is_empty() && !given.contains(['{', '[', '"']) && !given.starts_with('@')
}

/// Returns the JSON that `--service-config` gives or names.
fn text(given: &str) -> Result<String, Failure> {
    let Some(path) = given.strip_prefix('@') else { return Ok(given.to_owned()) };
    let read = fs::read_to_string(path);
    let text = read.map_err(|error| Failure::failed(format!("failed to read {path}: {error}")))?;
    Ok(text.trim_start_matches(BYTE_ORDER_MARK).to_owned())
}
