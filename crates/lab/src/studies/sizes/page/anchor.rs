//! Anchors on the page.

use thalweg_measure::size::ByteSize;

use crate::load::{Kind, Transport};

/// Returns the id of a kind of call, such as `unary-16-1` with one connection.
pub(super) fn kind_id(kind: Kind) -> String {
    format!("{}-{}-{}", kind.work, kind.in_flight, kind.connections)
}

/// Returns the anchor of a cell's windows.
pub(super) fn anchor(kind: Kind, transport: Transport, size: ByteSize) -> String {
    format!("{}{}", anchor_of_line(kind, transport), size.0)
}

/// Returns the prefix of a line's anchors; the size in bytes completes them.
pub(super) fn anchor_of_line(kind: Kind, transport: Transport) -> String {
    format!("w-{}-{transport}-", kind_id(kind))
}
