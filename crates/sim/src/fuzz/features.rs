//! What a target did with an input, which says whether the input is worth keeping.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What a target did, as hashes.
pub(super) type Features = HashSet<u64>;

pub(super) fn feature(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Longer inputs are cut: they take longer and say no more.
pub(super) const INPUT_LEN_MAX: usize = 16 << 10;
