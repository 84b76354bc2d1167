//! What makes two sides no pair.

use std::fmt;

/// Something in which two sides differ so that their figures say nothing of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What differs.
    pub what: String,
    /// What A has.
    pub a: String,
    /// What B has.
    pub b: String,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, a, b } = self;
        write!(f, "{what} ({a} and {b})")
    }
}
