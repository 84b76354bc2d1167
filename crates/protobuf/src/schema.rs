//! Descriptors, compiled once into a [`Schema`].
//!
//! `raw` reads the messages of `descriptor.proto`, and `features` resolves the features of an edition. `compile`
//! declares all names, links fields to their types and lays out each message. The result is a `pool` of records, one
//! per element, that refer to each other by index.
//!
//! A field's record has two halves that share no fact. The `Entry` (`table`), small and flat, is what decoding,
//! encoding and JSON iterate over. Its `FieldData` has names, options and defaults. [`MessageType`], [`Field`] and the
//! other handles refer to the pool.

mod compile;
mod defaults;
mod error;
mod features;
mod handles;
mod key;
mod kind;
mod lookup;
mod name_index;
mod names;
pub(crate) mod number;
pub(crate) mod pool;
mod raw;
mod shared;
pub(crate) mod table;

pub use error::{Problem, SchemaError};
pub use features::Edition;
pub use handles::{EnumType, EnumValue, Field, File, MessageId, MessageType, Method, Oneof, Service};
pub(crate) use key::Key;
pub use kind::{Cardinality, Kind, WellKnown};
pub use shared::Schema;
