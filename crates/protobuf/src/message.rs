//! Messages: memory, decoding, encoding, reading and modifying.
//!
//! [`Message`] owns its memory. To read many messages in sequence, use a [`Decoder`], which reuses its memory and
//! returns a [`MessageRef`] that borrows text from the input. An [`Encoder`] reuses its buffer.

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
