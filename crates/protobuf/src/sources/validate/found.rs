//! Errors that the checks find.

use crate::sources::error::Position;

/// Errors, and where each is.
pub(super) type Found = Vec<(Position, String)>;
