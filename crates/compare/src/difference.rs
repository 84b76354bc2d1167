//! A difference that makes two sides incomparable.

use std::fmt;

/// A difference between two sides that makes their figures incomparable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Name of the differing property.
    pub property: String,
    /// A's value.
    pub a: String,
    /// B's value.
    pub b: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { property, a, b } = self;
        write!(f, "{property} ({a} and {b})")
    }
}
