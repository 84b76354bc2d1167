//! The numbers of the policy.

/// Bounds and thresholds of [`Policy`](super::Policy); units are in the names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PolicyConfig {
    /// Never fewer lanes than this, at least one.
    pub(crate) floor: usize,
    /// Never more lanes than this, at least the floor.
    pub(crate) cap: usize,
    /// How often samples are to be taken.
    pub(crate) tick_ms: u64,
}

impl PolicyConfig {
    /// The default for a machine on which the process may use `cores`: from one lane to as many as cores, at most 16.
    pub(crate) fn for_cores(cores: usize) -> Self {
        Self { floor: 1, cap: cores.clamp(1, LANES_DEFAULT_MAX), tick_ms: 50 }
    }
}

/// The most lanes that a channel opens unless told otherwise.
const LANES_DEFAULT_MAX: usize = 16;
