//! Keys of metadata.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use bytes::Bytes;
use http::HeaderName;
use thiserror::Error;

use super::{Ascii, Binary, ValueEncoding};

/// A key whose values have the encoding `VE`: a lower-case header name.
#[derive(Clone, Eq, Hash, PartialEq)]
#[repr(transparent)]
pub struct MetadataKey<VE: ValueEncoding> {
    pub(crate) name: HeaderName,
    encoding: PhantomData<VE>,
}

/// A key of text values.
pub type AsciiMetadataKey = MetadataKey<Ascii>;
/// A key of binary values: it ends in `-bin`.
pub type BinaryMetadataKey = MetadataKey<Binary>;

/// A text is not a key: not a header name, or its suffix stands for the other encoding.
#[derive(Debug, Default, Error)]
#[error("invalid metadata key: not a header name, or its values have the other encoding (`-bin`)")]
#[non_exhaustive]
pub struct InvalidMetadataKey;

impl InvalidMetadataKey {
    #[doc(hidden)]
    pub fn new() -> Self {
        Self
    }
}

impl<VE: ValueEncoding> MetadataKey<VE> {
    /// Parses a key. Upper-case letters become lower-case.
    pub fn from_bytes(text: &[u8]) -> Result<Self, InvalidMetadataKey> {
        let name = HeaderName::from_bytes(text).map_err(|_| InvalidMetadataKey)?;
        if !VE::is_valid_key(name.as_str()) {
            return Err(InvalidMetadataKey);
        }
        Ok(Self::of(name))
    }

    /// Takes a lower-case key.
    ///
    /// # Panics
    ///
    /// If it is invalid.
    pub fn from_static(text: &'static str) -> Self {
        assert!(VE::is_valid_key(text), "invalid metadata key: {text:?}");
        Self::of(HeaderName::from_static(text))
    }

    /// Returns the key as text.
    #[inline]
    pub fn as_str(&self) -> &str {
        self.name.as_str()
    }

    /// Takes a name whose encoding is known.
    pub(crate) fn of(name: HeaderName) -> Self {
        Self { name, encoding: PhantomData }
    }

    /// Views a name whose encoding is known.
    #[expect(unsafe_code, reason = "a reference to a field of a transparent type, as one to the type")]
    pub(crate) fn of_ref(name: &HeaderName) -> &Self {
        // SAFETY: `Self` is transparent over `HeaderName`: its other field has no size. It adds no invariant.
        unsafe { &*std::ptr::from_ref(name).cast() }
    }
}

impl<VE: ValueEncoding> FromStr for MetadataKey<VE> {
    type Err = InvalidMetadataKey;

    fn from_str(text: &str) -> Result<Self, InvalidMetadataKey> {
        Self::from_bytes(text.as_bytes())
    }
}

impl<VE: ValueEncoding> AsRef<str> for MetadataKey<VE> {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl<VE: ValueEncoding> AsRef<[u8]> for MetadataKey<VE> {
    fn as_ref(&self) -> &[u8] {
        self.as_str().as_bytes()
    }
}

impl<VE: ValueEncoding> Borrow<str> for MetadataKey<VE> {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl<VE: ValueEncoding> fmt::Debug for MetadataKey<VE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<VE: ValueEncoding> fmt::Display for MetadataKey<VE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'a, VE: ValueEncoding> From<&'a Self> for MetadataKey<VE> {
    fn from(key: &'a Self) -> Self {
        key.clone()
    }
}

impl<VE: ValueEncoding> From<MetadataKey<VE>> for Bytes {
    fn from(key: MetadataKey<VE>) -> Self {
        Self::copy_from_slice(key.as_str().as_bytes())
    }
}

impl<'a, VE: ValueEncoding> PartialEq<&'a Self> for MetadataKey<VE> {
    fn eq(&self, other: &&'a Self) -> bool {
        *self == **other
    }
}

impl<VE: ValueEncoding> PartialEq<MetadataKey<VE>> for &MetadataKey<VE> {
    fn eq(&self, other: &MetadataKey<VE>) -> bool {
        **self == *other
    }
}

/// Ignores case.
impl<VE: ValueEncoding> PartialEq<str> for MetadataKey<VE> {
    fn eq(&self, other: &str) -> bool {
        self.name == *other
    }
}

impl<VE: ValueEncoding> PartialEq<MetadataKey<VE>> for str {
    fn eq(&self, other: &MetadataKey<VE>) -> bool {
        other == self
    }
}

impl<'a, VE: ValueEncoding> PartialEq<&'a str> for MetadataKey<VE> {
    fn eq(&self, other: &&'a str) -> bool {
        self == *other
    }
}

impl<VE: ValueEncoding> PartialEq<MetadataKey<VE>> for &str {
    fn eq(&self, other: &MetadataKey<VE>) -> bool {
        other == *self
    }
}

#[cfg(test)]
#[expect(clippy::cmp_owned, clippy::nonminimal_bool, clippy::op_ref, reason = "each comparison is tested")]
mod tests {
    use super::*;

    #[test]
    fn suffix_decides_encoding() {
        let check = |text: &str, ascii: bool, binary: bool| {
            assert_eq!(AsciiMetadataKey::from_bytes(text.as_bytes()).is_ok(), ascii, "{text}");
            assert_eq!(BinaryMetadataKey::from_bytes(text.as_bytes()).is_ok(), binary, "{text}");
        };
        check("host", true, false);
        check("trace-bin", false, true);
        check("Trace-BIN", false, true);
        check("bin", true, false);
        check("-bin", false, true);
        check("", false, false);
        check("a b", false, false);
        check("\u{e9}-bin", false, false);
    }

    #[test]
    fn keys_are_lower_case_text() {
        let key: AsciiMetadataKey = "X-Id".parse().unwrap();
        assert_eq!(
            (key.as_str(), key.to_string(), format!("{key:?}")),
            ("x-id", "x-id".into(), "\"x-id\"".into())
        );
        assert!(key == "x-id" && key == *"X-ID" && "x-id" == key && *"x-id" == key);
        assert!(key == &key && &key == key && MetadataKey::from(&key) == key);
        assert_eq!(Bytes::from(key), "x-id");
    }

    #[test]
    #[should_panic(expected = "invalid metadata key")]
    fn static_key_of_other_encoding_panics() {
        BinaryMetadataKey::from_static("x-id");
    }
}
