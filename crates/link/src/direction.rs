//! The two directions of a connection.

/// A direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    /// From the link's clients to the server.
    Up = 0,
    /// From the server to the clients.
    Down = 1,
}

impl Direction {
    pub(crate) const BOTH: [Self; 2] = [Self::Up, Self::Down];

    /// Returns the index of the source: 0 for the client, 1 for the server.
    pub(crate) fn from(self) -> usize {
        self as usize
    }

    /// Returns the index of the sink.
    pub(crate) fn to(self) -> usize {
        self.other() as usize
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }

    /// Returns the direction from a side, and the one to it.
    pub(crate) fn of_side(index: usize) -> [Self; 2] {
        if index == 0 { [Self::Up, Self::Down] } else { [Self::Down, Self::Up] }
    }
}
