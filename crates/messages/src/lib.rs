//! The messages that the lab's studies convert and echo: those of `proto/shapes.proto`, made from a seed, and, with the
//! feature `own`, anybody's own.
//!
//! `thalweg lab codec` converts them, `thalweg lab json` echoes them: the same messages, so that figures of the one can
//! be laid beside those of the other.
//!
//! ```
//! use thalweg_messages::{Kind, SEED, generate};
//!
//! let orders = generate::orders(SEED);
//! // The same seed makes the same messages, on every machine.
//! assert_eq!(orders, generate::orders(SEED));
//! assert_eq!("order".parse(), Ok(Kind::Order));
//! ```

pub mod generate;
mod kind;
#[cfg(feature = "own")]
pub mod own;
pub mod plain;

pub use kind::{Kind, UnknownKind};

/// What messages are made from unless another seed is named.
pub const SEED: u64 = 1;

/// Messages of a type that is known at run time only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnMessages {
    /// Their type's full name.
    pub type_name: String,
    /// The descriptor set that has it.
    pub set: Vec<u8>,
    /// Each message's bytes of Protobuf; there is at least one.
    pub wires: Vec<Vec<u8>>,
}
