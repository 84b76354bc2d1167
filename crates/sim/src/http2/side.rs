//! The two ends of a connection.

/// One end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Opens streams.
    Client,
    /// Responds.
    Server,
}

impl Side {
    pub(crate) const BOTH: [Side; 2] = [Side::Client, Side::Server];

    pub(crate) fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

impl From<Side> for u64 {
    fn from(side: Side) -> u64 {
        side as u64
    }
}

/// A value for each side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Both<T>(pub(crate) [T; 2]);

impl<T> std::ops::Index<Side> for Both<T> {
    type Output = T;

    fn index(&self, side: Side) -> &T {
        &self.0[side as usize]
    }
}

impl<T> std::ops::IndexMut<Side> for Both<T> {
    fn index_mut(&mut self, side: Side) -> &mut T {
        &mut self.0[side as usize]
    }
}
