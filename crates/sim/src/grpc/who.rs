//! The two ends of a call.

/// One end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Client,
    Server,
}

impl From<Who> for u64 {
    fn from(who: Who) -> u64 {
        who as u64
    }
}
