//! Features of a target's run, which show whether the input is worth keeping.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Hashes of a target's observed behaviour.
pub(super) type Features = HashSet<u64>;

pub(super) fn feature(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Longer inputs are cut: they take longer without finding more.
pub(super) const INPUT_LEN_MAX: usize = 16 << 10;
