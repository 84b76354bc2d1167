//! Custom metadata: text and binary values by key, in the headers and trailers of a call.
//!
//! A key that ends in `-bin` has binary values, which are Base64 on the wire; every other key has text. The types keep
//! both apart: a [`MetadataKey`] and a [`MetadataValue`] have an encoding, [`Ascii`] or [`Binary`].

mod encoding;
mod entry;
mod iter;
mod key;
mod lookup;
mod map;
mod value;

pub use self::encoding::{Ascii, BASE64, Binary, ValueEncoding};
pub use self::entry::{Entry, OccupiedEntry, VacantEntry};
pub use self::iter::{
    GetAll, Iter, IterMut, KeyAndMutValueRef, KeyAndValueRef, KeyRef, Keys, ValueDrain, ValueIter,
    ValueIterMut, ValueRef, ValueRefMut, Values, ValuesMut,
};
pub use self::key::{AsciiMetadataKey, BinaryMetadataKey, MetadataKey};
pub use self::lookup::{AsEncodingAgnosticMetadataKey, AsMetadataKey, IntoMetadataKey};
pub use self::map::MetadataMap;
pub use self::value::{AsciiMetadataValue, BinaryMetadataValue, MetadataValue};

/// Errors of keys and values.
pub mod errors {
    pub use super::encoding::{InvalidMetadataValue, InvalidMetadataValueBytes};
    pub use super::key::InvalidMetadataKey;
    pub use super::value::ToStrError;
}

/// `application/grpc`, the content type of gRPC.
pub const GRPC_CONTENT_TYPE: http::HeaderValue = http::HeaderValue::from_static("application/grpc");
