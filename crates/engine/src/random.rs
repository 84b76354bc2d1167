//! Random numbers of low quality.

use std::hash::{BuildHasher, RandomState};

/// Returns a random number.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().hash_one(0u8)
}

/// Returns a number in 0..1 for jitter, with no guarantee of quality.
pub(crate) fn random_unit() -> f64 {
    RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64
}
