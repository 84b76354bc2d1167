//! Names and colours of compared stacks.

use thalweg_measure::page::chart::LineStyle;

use crate::load::multiples::peer_colour;
use crate::load::{Kind, Transport};
use crate::stack::Pair;

/// A kind of call over a transport.
pub(super) type LineKey = (Kind, Transport);

/// Returns the style of a stack's lines: ours, or the peer with this index.
pub(super) fn line_style(pair: &Pair, peer: Option<usize>) -> LineStyle {
    let width = if peer.is_some() { 2.0 } else { 2.8 };
    LineStyle { width, ..LineStyle::new(pair.to_string(), peer.map_or("ours", peer_colour)) }
}

/// Returns the style of the bare socket's lines.
pub(super) fn socket() -> LineStyle {
    LineStyle { dash: &[2, 3], width: 1.6, ..LineStyle::new("bare socket", "socket") }
}

/// Returns a line's name, such as `unary, 16 in flight, TCP`.
pub(super) fn line_name((kind, transport): LineKey) -> String {
    format!("{}, {transport}", kind.label())
}
