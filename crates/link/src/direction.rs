//! The two directions of a connection.

/// Where bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    /// From those who connect to the link.
    Up = 0,
    /// Back to them.
    Down = 1,
}

impl Direction {
    pub(crate) const BOTH: [Self; 2] = [Self::Up, Self::Down];

    /// The side it comes from: 0 is the client's, 1 the server's.
    pub(crate) fn from(self) -> usize {
        self as usize
    }

    /// The side it goes to.
    pub(crate) fn to(self) -> usize {
        self.other() as usize
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }

    /// The direction from that side, and the one to it.
    pub(crate) fn of_side(index: usize) -> [Self; 2] {
        if index == 0 { [Self::Up, Self::Down] } else { [Self::Down, Self::Up] }
    }
}
