//! Chance, where any will do.

use std::hash::{BuildHasher, RandomState};

/// A number in 0..1 for jitter; needs no quality beyond not being the same everywhere.
pub(crate) fn random_unit() -> f64 {
    RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64
}
