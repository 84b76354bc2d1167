//! The ring: endpoints in the order of hashes (gRFC A42).

#[cfg(test)]
mod tests;

use std::fmt::Write;

use twox_hash::XxHash64;

use crate::endpoint::Endpoint;

/// Entries in the order of their hashes; each endpoint has one or more.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ring(Vec<Entry>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    hash: u64,
    /// Position of the endpoint.
    at: u32,
}

impl Ring {
    /// Creates a ring of `min` to `max` entries, in which the lightest endpoint has a whole number of them.
    ///
    /// It has more than `max`, by less than one per endpoint, if an endpoint would have no entry otherwise.
    pub(super) fn new(endpoints: &[Endpoint], min: u64, max: u64) -> Self {
        let mut entries = Vec::new();
        let mut key = String::new();
        for ((at, endpoint), count) in (0..).zip(endpoints).zip(counts(endpoints, min, max)) {
            key.clear();
            match endpoint.hash_key.as_deref() {
                Some(hash_key) if !hash_key.is_empty() => key.push_str(hash_key),
                _ => key = endpoint.name().to_string(),
            }
            key.push('_');
            let prefix = key.len();
            for nth in 0..count {
                key.truncate(prefix);
                write!(key, "{nth}").expect("writing to a string succeeds");
                entries.push(Entry { hash: XxHash64::oneshot(0, key.as_bytes()), at });
            }
        }
        entries.sort_unstable();
        Self(entries)
    }

    /// Returns the positions of the endpoints from a hash on, once around the ring.
    pub(super) fn walk(&self, hash: u64) -> impl Iterator<Item = usize> {
        let first = self.0.partition_point(|entry| entry.hash < hash);
        let (end, start) = self.0.split_at(first);
        start.iter().chain(end).map(|entry| entry.at as usize)
    }
}

/// Returns each endpoint's number of entries.
///
/// Weights 3, 3, 4 and 1024 entries at least: the lightest has ⌈1024 × 3/10⌉ = 308, and the others 308 and 411.
fn counts(endpoints: &[Endpoint], min: u64, max: u64) -> impl Iterator<Item = u128> {
    let weight = |endpoint: &Endpoint| u128::from(endpoint.weight.max(1));
    let sum = endpoints.iter().map(weight).sum::<u128>().max(1);
    let lightest = endpoints.iter().map(weight).min().unwrap_or(1);
    let of_lightest = (lightest * u128::from(min)).div_ceil(sum);
    // The size of the ring as a fraction.
    let exact = (sum * of_lightest, lightest);
    let (size, of) = if exact.0 <= u128::from(max) * exact.1 { exact } else { (u128::from(max), 1) };
    endpoints.iter().map(move |endpoint| (weight(endpoint) * size).div_ceil(sum * of))
}
