//! Descriptors, compiled once into a [`Schema`].
//!
//! `raw` reads `descriptor.proto`'s messages, `features` says what the edition makes of them, and `compile` declares
//! all names, links fields to their types and lays each message out. What it makes is a `pool` of records, one for
//! each element of the files, which name each other by index. A field's record has two halves, and no fact is in both:
//! the `Entry` (`table`), small and flat, is what decoding, encoding and JSON walk over; names, options and defaults
//! are in its `FieldData`. [`MessageType`], [`Field`] and the other handles look into the result.

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
