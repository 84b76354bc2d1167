//! Why the policy decides as it does, with the figures.

use std::fmt;

/// The signal behind a decision and its figures, as a sentence for logs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reason {
    /// Calls wait for a stream, because the peer allows no more on a connection.
    StreamLimit { waiting: usize },
    /// There are fewer lanes than the floor.
    Floor { floor: usize },
    /// There are more lanes than the cap.
    Cap { cap: usize },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StreamLimit { waiting } => write!(f, "{waiting} calls wait for a stream"),
            Self::Floor { floor } => write!(f, "fewer lanes than the floor of {floor}"),
            Self::Cap { cap } => write!(f, "more lanes than the cap of {cap}"),
        }
    }
}
