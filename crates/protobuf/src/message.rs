//! Messages: their memory, decoding, encoding, reading and changing.
//!
//! [`Message`] owns all that it has. Where many messages are read one after the other, a [`Decoder`] keeps its memory,
//! and gives a [`MessageRef`] that borrows text from the input; an [`Encoder`] keeps its buffer.

mod arena;
mod decode;
mod decoder;
mod encode;
mod encoder;
mod field_key;
mod limits;
mod message_ref;
mod output;
mod owned;
mod read;
mod value;
mod write;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use field_key::FieldKey;
pub use limits::{DecodeError, Limits};
pub use message_ref::MessageRef;
pub use owned::Message;
pub use value::{List, Map, Value};
pub use write::{MessageMut, SetError};
