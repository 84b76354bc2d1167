//! The [wire format](https://protobuf.dev/programming-guides/encoding/): varints, tags and length-delimited records.
//!
//! A message is a sequence of records: a [`Tag`], which is a varint of `(number << 3) | wire type`, and a value whose
//! form depends on the wire type. [`Reader`] iterates over records and tracks its offset. It reports errors and their
//! offsets as a [`WireError`].
//!
//! ```
//! use thalweg_protobuf::wire::{Reader, Tag, WireType};
//!
//! let mut reader = Reader::new(b"\x08\x96\x01\x12\x02hi");
//! assert_eq!(reader.tag()?, Tag::new(1, WireType::Varint));
//! assert_eq!(reader.varint()?, 150);
//! assert_eq!(reader.tag()?, Tag::new(2, WireType::Len));
//! assert_eq!(reader.len_prefixed()?, b"hi");
//! assert!(reader.is_empty());
//! # Ok::<(), thalweg_protobuf::wire::WireError>(())
//! ```

mod error;
pub(crate) mod message_set;
mod packed;
mod reader;
mod tag;
mod varint;

pub use error::{WireError, WireErrorKind};
pub use reader::Reader;
pub use tag::{NUMBER_MAX, Tag, WireType};
pub(crate) use varint::join_short;
pub use varint::{VARINT_LEN_MAX, put_tag, put_varint, unzigzag, varint_len, zigzag};

#[cfg(test)]
mod tests;
