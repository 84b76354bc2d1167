//! Bounds against abusive peers.

/// What a peer may cost beyond what it asks for. Each bound has a default that honest peers do not meet.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Limits {}
