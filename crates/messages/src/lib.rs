//! The messages that the lab's studies convert and echo: those of `proto/shapes.proto`, made from a seed.
//!
//! `thalweg lab codec` converts them, `thalweg lab json` echoes them: the same messages, so that figures of the one can
//! be laid beside those of the other.

pub mod generate;
mod kind;
pub mod plain;

pub use kind::{Kind, UnknownKind};

/// What messages are made from unless another seed is named.
pub const SEED: u64 = 1;
