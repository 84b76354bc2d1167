//! Random numbers without a source: functions of turns and seeds.

use twox_hash::XxHash64;

use crate::endpoint::Endpoint;

/// Scrambles the bits of `value`: the finalizer of SplitMix64. Pickers derive random choices from turns with it.
pub fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Hashes the name of an endpoint with a seed: a random number that the endpoint keeps in all lists.
pub(super) fn seeded_hash(endpoint: &Endpoint, seed: u64) -> u64 {
    XxHash64::oneshot(seed, endpoint.name().to_string().as_bytes())
}
