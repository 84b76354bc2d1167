//! The two encodings of metadata values.

use std::fmt;
use std::hash::Hash;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::HeaderValue;
use thiserror::Error;

/// gRPC's Base64, sent without padding. As in other implementations, received values may be padded, and unused bits of
/// the last character are ignored. tonic's decoder is stricter.
pub const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The encoding of a key's values: [`Ascii`] or [`Binary`].
pub trait ValueEncoding: Clone + Eq + PartialEq + Hash + sealed::Coding {
    /// Returns whether the values of `key` have this encoding.
    fn is_valid_key(key: &str) -> bool;
}

/// Values are text, as sent.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Ascii {}

/// Values are bytes, sent as Base64.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Binary {}

/// The suffix of keys with binary values.
const BINARY_SUFFIX: &str = "-bin";

impl ValueEncoding for Ascii {
    fn is_valid_key(key: &str) -> bool {
        !Binary::is_valid_key(key)
    }
}

impl ValueEncoding for Binary {
    fn is_valid_key(key: &str) -> bool {
        // Keys are case-insensitive.
        let suffix = key.len().checked_sub(BINARY_SUFFIX.len()).and_then(|start| key.get(start..));
        suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case(BINARY_SUFFIX))
    }
}

/// A text value has a character other than visible ASCII, space and tab.
#[derive(Debug, Default, Error, Hash)]
#[error("invalid metadata value: it has a byte other than visible ASCII, space and tab")]
#[non_exhaustive]
pub struct InvalidMetadataValue;

/// Bytes are not a valid value: a text value has a control character, or a binary value is not Base64.
#[derive(Debug, Default, Error, Hash)]
#[error("invalid bytes of a metadata value: a control character, or not Base64")]
#[non_exhaustive]
pub struct InvalidMetadataValueBytes;

pub(super) mod sealed {
    use std::fmt;

    use bytes::Bytes;
    use http::HeaderValue;

    use super::InvalidMetadataValueBytes;

    /// Conversion between values and header fields.
    pub trait Coding {
        /// Returns whether the field's value is empty.
        fn is_empty(field: &[u8]) -> bool;
        /// Encodes a value.
        fn encode(value: Bytes) -> Result<HeaderValue, InvalidMetadataValueBytes>;
        /// Takes an encoded value.
        ///
        /// # Panics
        ///
        /// If it is invalid.
        fn from_static(field: &'static str) -> HeaderValue;
        /// Decodes a value.
        fn decode(field: &[u8]) -> Result<Bytes, InvalidMetadataValueBytes>;
        /// Returns whether the field has this value.
        fn equals(field: &HeaderValue, value: &[u8]) -> bool;
        /// Returns whether both fields have the same value.
        fn values_equal(a: &HeaderValue, b: &HeaderValue) -> bool;
        /// Writes the value for debugging.
        fn fmt(field: &HeaderValue, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    }
}

impl sealed::Coding for Ascii {
    fn is_empty(field: &[u8]) -> bool {
        field.is_empty()
    }

    fn encode(value: Bytes) -> Result<HeaderValue, InvalidMetadataValueBytes> {
        HeaderValue::from_maybe_shared(value).map_err(|_| InvalidMetadataValueBytes)
    }

    fn from_static(field: &'static str) -> HeaderValue {
        HeaderValue::from_static(field)
    }

    fn decode(field: &[u8]) -> Result<Bytes, InvalidMetadataValueBytes> {
        Ok(Bytes::copy_from_slice(field))
    }

    fn equals(field: &HeaderValue, value: &[u8]) -> bool {
        field.as_bytes() == value
    }

    fn values_equal(a: &HeaderValue, b: &HeaderValue) -> bool {
        a == b
    }

    fn fmt(field: &HeaderValue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(field, f)
    }
}

impl sealed::Coding for Binary {
    fn is_empty(field: &[u8]) -> bool {
        field.iter().all(|byte| *byte == b'=')
    }

    fn encode(value: Bytes) -> Result<HeaderValue, InvalidMetadataValueBytes> {
        let field = Bytes::from(BASE64.encode(value));
        HeaderValue::from_maybe_shared(field).map_err(|_| InvalidMetadataValueBytes)
    }

    fn from_static(field: &'static str) -> HeaderValue {
        assert!(BASE64.decode(field).is_ok(), "invalid Base64: {field:?}");
        HeaderValue::from_static(field)
    }

    fn decode(field: &[u8]) -> Result<Bytes, InvalidMetadataValueBytes> {
        BASE64.decode(field).map(Bytes::from).map_err(|_| InvalidMetadataValueBytes)
    }

    fn equals(field: &HeaderValue, value: &[u8]) -> bool {
        Self::decode(field.as_bytes()).is_ok_and(|decoded| decoded == value)
    }

    fn values_equal(a: &HeaderValue, b: &HeaderValue) -> bool {
        match (Self::decode(a.as_bytes()), Self::decode(b.as_bytes())) {
            (Ok(a), Ok(b)) => a == b,
            (Err(_), Err(_)) => a == b,
            _ => false,
        }
    }

    fn fmt(field: &HeaderValue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::decode(field.as_bytes()) {
            Ok(value) => fmt::Debug::fmt(&value, f),
            Err(_) => write!(f, "b[invalid]{field:?}"),
        }
    }
}
