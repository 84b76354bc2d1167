//! A difference that makes two sides incomparable.

use std::fmt;

/// A difference between two sides that makes their figures incomparable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Name of the differing property.
    pub what: String,
    /// A's value.
    pub a: String,
    /// B's value.
    pub b: String,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, a, b } = self;
        write!(f, "{what} ({a} and {b})")
    }
}
