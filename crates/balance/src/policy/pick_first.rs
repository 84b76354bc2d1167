//! `pick_first`: all calls go to one endpoint, which has all addresses (gRFC A62).

#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use super::{
    Decision, EndpointView, NoneReady, Pick, PickArgs, Picker, Policy, random::seeded_hash, state_of,
};
use crate::endpoint::{Address, ConnectivityState, Endpoint};

/// Settings of `pick_first`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PickFirstConfig {
    /// Whether the endpoints are shuffled before their addresses are tried in order; off by default.
    pub shuffle_address_list: bool,
}

impl PickFirstConfig {
    /// Sets whether the endpoints are shuffled.
    pub fn shuffle_address_list(mut self, shuffle: bool) -> Self {
        self.shuffle_address_list = shuffle;
        self
    }
}

/// Merges all endpoints into one, and connects it when a call needs it.
///
/// The endpoint connects to the first of its addresses that works.
#[derive(Clone, Copy, Debug)]
pub struct PickFirst {
    config: PickFirstConfig,
    seed: u64,
}

/// Treats all calls alike.
#[derive(Clone, Debug)]
struct Always(Pick);

impl PickFirst {
    /// Creates the policy. The seed determines the order of shuffled endpoints.
    pub fn new(config: PickFirstConfig, seed: u64) -> Self {
        Self { config, seed }
    }
}

impl Policy for PickFirst {
    fn name(&self) -> &'static str {
        "pick_first"
    }

    fn reconfigure(&mut self, settings: &dyn Any) -> bool {
        let Some(config) = settings.downcast_ref::<PickFirstConfig>() else { return false };
        self.config = *config;
        true
    }

    fn select(&mut self, mut resolved: Vec<Endpoint>) -> Vec<Endpoint> {
        if self.config.shuffle_address_list {
            shuffle(&mut resolved, self.seed);
        }
        let mut seen = HashSet::new();
        let addresses = resolved.into_iter().flat_map(|endpoint| endpoint.addresses);
        let addresses = interleave(addresses.filter(|address| seen.insert(address.clone())));
        if addresses.is_empty() { Vec::new() } else { vec![Endpoint::with_addresses(addresses)] }
    }

    /// gRFC A17: with one endpoint there is no other one to call.
    fn checks_health(&self) -> bool {
        false
    }

    fn decide(&mut self, endpoints: &[EndpointView<'_>], _: Instant) -> Decision {
        let endpoints = endpoints.get(..1).unwrap_or_default();
        let picker: Arc<dyn Picker> = match endpoints.first().map(|view| view.state) {
            Some(ConnectivityState::Ready) => Arc::new(Always(Pick::Endpoint(0))),
            Some(ConnectivityState::Idle) => Arc::new(Always(Pick::Connect(0))),
            _ => Arc::new(NoneReady::of(endpoints)),
        };
        Decision::new(picker, state_of(endpoints))
    }
}

impl Picker for Always {
    fn pick(&self, _: &PickArgs<'_>) -> Pick {
        self.0.clone()
    }
}

/// Orders endpoints at random; heavier ones tend to come first (gRFC A113).
///
/// The order is the seed's, so that an update of the list leaves the endpoints that stay in their order.
fn shuffle(endpoints: &mut [Endpoint], seed: u64) {
    // In (0, 1): 53 random bits, the mantissa of an f64.
    let uniform =
        |endpoint: &Endpoint| ((seeded_hash(endpoint, seed) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    // A113 sorts by u^(1/w), the largest first; the logarithm has the same order and does not underflow.
    let key = |endpoint: &Endpoint| -uniform(endpoint).ln() / f64::from(endpoint.weight.max(1));
    endpoints.sort_by(|a, b| key(a).total_cmp(&key(b)));
}

/// Alternates between address families, starting with the first address's (RFC 8305 §4, gRFC A61).
fn interleave(addresses: impl Iterator<Item = Address>) -> Vec<Address> {
    let mut families: Vec<(Family, Vec<Address>)> = Vec::new();
    for address in addresses {
        let family = Family::of(&address);
        match families.iter_mut().find(|(known, _)| *known == family) {
            Some((_, members)) => members.push(address),
            None => families.push((family, vec![address])),
        }
    }
    let longest = families.iter().map(|(_, members)| members.len()).max().unwrap_or(0);
    let round = |at: usize| families.iter().filter_map(move |(_, members)| members.get(at).cloned());
    (0..longest).flat_map(round).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
    Unix,
}

impl Family {
    /// Returns the family that the operating system routes: that of IPv4-mapped addresses is IPv4.
    fn of(address: &Address) -> Self {
        match address {
            Address::Tcp(address) if address.ip().to_canonical().is_ipv4() => Self::V4,
            Address::Tcp(_) => Self::V6,
            Address::Unix(_) | Address::UnixAbstract(_) | Address::Name(_) => Self::Unix,
        }
    }
}
