//! Where things stand on the page.

use thalweg_measure::size::ByteSize;

use crate::load::{Kind, Transport};

/// A kind of call in the page's data: `unary-16-1`, over one connection.
pub(super) fn kind_id(kind: Kind) -> String {
    format!("{}-{}-{}", kind.work, kind.in_flight, kind.connections)
}

/// Where the windows of a cell stand.
pub(super) fn anchor(kind: Kind, transport: Transport, size: ByteSize) -> String {
    format!("{}{}", anchor_of_line(kind, transport), size.0)
}

/// The beginning of the anchors of a line; the size in bytes completes them.
pub(super) fn anchor_of_line(kind: Kind, transport: Transport) -> String {
    format!("w-{}-{transport}-", kind_id(kind))
}
