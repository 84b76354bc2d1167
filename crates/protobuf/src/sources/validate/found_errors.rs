//! Errors found by the checks.

use crate::sources::error::Position;

/// Errors with their positions.
pub(super) type FoundErrors = Vec<(Position, String)>;
