//! Messages that the lab's studies convert and echo: those of `proto/shapes.proto`, generated from a seed, and with the
//! feature `own` the user's own.
//!
//! `thalweg lab codec` converts them, and `thalweg lab json` echoes them, so that the results of both are comparable.
//!
//! ```
//! use thalweg_messages::{Kind, SEED, generate};
//!
//! let orders = generate::orders(SEED);
//! // The same seed gives the same messages on every machine.
//! assert_eq!(orders, generate::orders(SEED));
//! assert_eq!("order".parse(), Ok(Kind::Order));
//! ```

pub mod generate;
mod kind;
#[cfg(feature = "own")]
pub mod own;
pub mod plain;

pub use kind::{Kind, UnknownKind};

/// Default seed of messages.
pub const SEED: u64 = 1;

/// Messages of a type that is only known at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnMessages {
    /// Full name of the type.
    pub type_name: String,
    /// Descriptor set that contains the type.
    pub set: Vec<u8>,
    /// Protobuf bytes of each message; at least one message.
    pub wires: Vec<Vec<u8>>,
}
