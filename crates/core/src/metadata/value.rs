//! Values of metadata.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::str::FromStr;

use bytes::Bytes;
use http::HeaderValue;
use thiserror::Error;

use super::errors::{InvalidMetadataValue, InvalidMetadataValueBytes};
use super::{Ascii, Binary, MetadataKey, ValueEncoding};

/// A value with the encoding `VE`, kept as sent: text, or Base64.
///
/// Values are equal if their decoded bytes are. Their order is that of the encoded bytes.
#[derive(Clone)]
#[repr(transparent)]
pub struct MetadataValue<VE: ValueEncoding> {
    pub(crate) field: HeaderValue,
    encoding: PhantomData<VE>,
}

/// A text value.
pub type AsciiMetadataValue = MetadataValue<Ascii>;
/// A binary value.
pub type BinaryMetadataValue = MetadataValue<Binary>;

/// A value has bytes other than visible ASCII.
#[derive(Debug, Error)]
#[error("a metadata value has bytes other than visible ASCII")]
#[non_exhaustive]
pub struct ToStrError;

impl<VE: ValueEncoding> MetadataValue<VE> {
    /// Takes an encoded value.
    ///
    /// # Panics
    ///
    /// If it has characters other than visible ASCII, space and tab, or if it is binary and not Base64.
    pub fn from_static(encoded: &'static str) -> Self {
        Self::of(VE::from_static(encoded))
    }

    /// Takes an encoded value. In contrast to tonic, it is checked.
    ///
    /// # Panics
    ///
    /// If it has control characters.
    ///
    /// # Safety
    ///
    /// There are no requirements; the signature is tonic's.
    #[expect(unsafe_code, reason = "the signature is tonic's")]
    pub unsafe fn from_shared_unchecked(encoded: Bytes) -> Self {
        Self::of(HeaderValue::from_maybe_shared(encoded).expect("a value without control characters"))
    }

    /// Returns whether the decoded value is empty.
    pub fn is_empty(&self) -> bool {
        VE::is_empty(self.field.as_bytes())
    }

    /// Decodes the value.
    pub fn to_bytes(&self) -> Result<Bytes, InvalidMetadataValueBytes> {
        VE::decode(self.field.as_bytes())
    }

    /// Marks the value as secret: it is not shown for debugging, and no table of HPACK has it.
    pub fn set_sensitive(&mut self, is_sensitive: bool) {
        self.field.set_sensitive(is_sensitive);
    }

    /// Returns whether the value is secret.
    pub fn is_sensitive(&self) -> bool {
        self.field.is_sensitive()
    }

    /// Returns the value as sent: text, or Base64.
    pub fn as_encoded_bytes(&self) -> &[u8] {
        self.field.as_bytes()
    }

    /// Takes a field's value with this encoding.
    pub(crate) fn of(field: HeaderValue) -> Self {
        Self { field, encoding: PhantomData }
    }

    /// Views a field's value with this encoding.
    #[expect(unsafe_code, reason = "a reference to a field of a transparent type, as one to the type")]
    pub(crate) fn of_ref(field: &HeaderValue) -> &Self {
        // SAFETY: `Self` is transparent over `HeaderValue`: its other field has no size. It adds no invariant.
        unsafe { &*std::ptr::from_ref(field).cast() }
    }

    /// Views a field's value with this encoding.
    #[expect(unsafe_code, reason = "a reference to a field of a transparent type, as one to the type")]
    pub(crate) fn of_mut(field: &mut HeaderValue) -> &mut Self {
        // SAFETY: as above, and the reference stays unique.
        unsafe { &mut *std::ptr::from_mut(field).cast() }
    }
}

impl MetadataValue<Ascii> {
    /// Returns a key as a value.
    pub fn from_key<KeyVE: ValueEncoding>(key: MetadataKey<KeyVE>) -> Self {
        key.into()
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.field.len()
    }

    /// Returns the value as text.
    ///
    /// # Errors
    ///
    /// [`ToStrError`] if it has bytes other than visible ASCII, space and tab.
    pub fn to_str(&self) -> Result<&str, ToStrError> {
        self.field.to_str().map_err(|_| ToStrError)
    }

    /// Returns the value's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.field.as_bytes()
    }
}

impl MetadataValue<Binary> {
    /// Encodes bytes.
    pub fn from_bytes(value: &[u8]) -> Self {
        Self::try_from(value).expect("Base64 is a valid field value")
    }
}

impl<VE: ValueEncoding> TryFrom<Bytes> for MetadataValue<VE> {
    type Error = InvalidMetadataValueBytes;

    fn try_from(value: Bytes) -> Result<Self, Self::Error> {
        VE::encode(value).map(Self::of)
    }
}

impl<VE: ValueEncoding> TryFrom<&[u8]> for MetadataValue<VE> {
    type Error = InvalidMetadataValueBytes;

    fn try_from(value: &[u8]) -> Result<Self, Self::Error> {
        Bytes::copy_from_slice(value).try_into()
    }
}

impl<VE: ValueEncoding, const N: usize> TryFrom<&[u8; N]> for MetadataValue<VE> {
    type Error = InvalidMetadataValueBytes;

    fn try_from(value: &[u8; N]) -> Result<Self, Self::Error> {
        value.as_slice().try_into()
    }
}

impl<VE: ValueEncoding> TryFrom<Vec<u8>> for MetadataValue<VE> {
    type Error = InvalidMetadataValueBytes;

    fn try_from(value: Vec<u8>) -> Result<Self, Self::Error> {
        Bytes::from(value).try_into()
    }
}

impl FromStr for MetadataValue<Ascii> {
    type Err = InvalidMetadataValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        HeaderValue::from_str(text).map(Self::of).map_err(|_| InvalidMetadataValue)
    }
}

impl<'a> TryFrom<&'a str> for MetadataValue<Ascii> {
    type Error = InvalidMetadataValue;

    fn try_from(text: &'a str) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl<'a> TryFrom<&'a String> for MetadataValue<Ascii> {
    type Error = InvalidMetadataValue;

    fn try_from(text: &'a String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl TryFrom<String> for MetadataValue<Ascii> {
    type Error = InvalidMetadataValue;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl<KeyVE: ValueEncoding> From<MetadataKey<KeyVE>> for MetadataValue<Ascii> {
    fn from(key: MetadataKey<KeyVE>) -> Self {
        Self::of(key.name.into())
    }
}

macro_rules! from_integers {
    ($($integer:ty)*) => { $(
        impl From<$integer> for MetadataValue<Ascii> {
            fn from(number: $integer) -> Self {
                Self::of(number.into())
            }
        }
    )* };
}

from_integers!(u16 i16 u32 i32 u64 i64 usize isize);

impl<'a, VE: ValueEncoding> From<&'a Self> for MetadataValue<VE> {
    fn from(value: &'a Self) -> Self {
        value.clone()
    }
}

/// Returns the value as sent.
impl<VE: ValueEncoding> From<MetadataValue<VE>> for Bytes {
    fn from(value: MetadataValue<VE>) -> Self {
        Self::copy_from_slice(value.field.as_bytes())
    }
}

/// Returns the value as sent.
impl<VE: ValueEncoding> AsRef<[u8]> for MetadataValue<VE> {
    fn as_ref(&self) -> &[u8] {
        self.field.as_bytes()
    }
}

impl<VE: ValueEncoding> fmt::Debug for MetadataValue<VE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_sensitive() { f.write_str("Sensitive") } else { VE::fmt(&self.field, f) }
    }
}

impl<VE: ValueEncoding> Eq for MetadataValue<VE> {}

impl<VE: ValueEncoding> PartialEq for MetadataValue<VE> {
    fn eq(&self, other: &Self) -> bool {
        VE::values_equal(&self.field, &other.field)
    }
}

/// Equal values have equal hashes, so the decoded bytes count.
impl<VE: ValueEncoding> Hash for MetadataValue<VE> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.to_bytes() {
            Ok(value) => value.hash(state),
            Err(_) => self.as_encoded_bytes().hash(state),
        }
    }
}

impl<VE: ValueEncoding> Ord for MetadataValue<VE> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.field.cmp(&other.field)
    }
}

impl<VE: ValueEncoding> PartialOrd for MetadataValue<VE> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares with the decoded value for equality, with the encoded one for order.
macro_rules! compared_with {
    ($($other:ty: $bytes:ident;)*) => { $(
        impl<VE: ValueEncoding> PartialEq<$other> for MetadataValue<VE> {
            fn eq(&self, other: &$other) -> bool {
                VE::equals(&self.field, other.$bytes())
            }
        }

        impl<VE: ValueEncoding> PartialEq<MetadataValue<VE>> for $other {
            fn eq(&self, other: &MetadataValue<VE>) -> bool {
                other == self
            }
        }

        impl<VE: ValueEncoding> PartialOrd<$other> for MetadataValue<VE> {
            fn partial_cmp(&self, other: &$other) -> Option<Ordering> {
                self.field.as_bytes().partial_cmp(other.$bytes())
            }
        }

        impl<VE: ValueEncoding> PartialOrd<MetadataValue<VE>> for $other {
            fn partial_cmp(&self, other: &MetadataValue<VE>) -> Option<Ordering> {
                self.$bytes().partial_cmp(other.field.as_bytes())
            }
        }
    )* };
}

compared_with! {
    str: as_bytes;
    String: as_bytes;
    [u8]: as_ref;
}

impl<'a, VE: ValueEncoding, T: ?Sized> PartialEq<&'a T> for MetadataValue<VE>
where
    Self: PartialEq<T>,
{
    fn eq(&self, other: &&'a T) -> bool {
        *self == **other
    }
}

impl<'a, VE: ValueEncoding, T: ?Sized> PartialOrd<&'a T> for MetadataValue<VE>
where
    Self: PartialOrd<T>,
{
    fn partial_cmp(&self, other: &&'a T) -> Option<Ordering> {
        self.partial_cmp(*other)
    }
}

impl<VE: ValueEncoding> PartialEq<MetadataValue<VE>> for &MetadataValue<VE> {
    fn eq(&self, other: &MetadataValue<VE>) -> bool {
        **self == *other
    }
}

impl<VE: ValueEncoding> PartialOrd<MetadataValue<VE>> for &MetadataValue<VE> {
    fn partial_cmp(&self, other: &MetadataValue<VE>) -> Option<Ordering> {
        (**self).partial_cmp(other)
    }
}

impl<VE: ValueEncoding> PartialEq<MetadataValue<VE>> for &str {
    fn eq(&self, other: &MetadataValue<VE>) -> bool {
        other == *self
    }
}

impl<VE: ValueEncoding> PartialOrd<MetadataValue<VE>> for &str {
    fn partial_cmp(&self, other: &MetadataValue<VE>) -> Option<Ordering> {
        self.as_bytes().partial_cmp(other.field.as_bytes())
    }
}

#[cfg(test)]
#[expect(clippy::cmp_owned, clippy::nonminimal_bool, clippy::op_ref, reason = "each comparison is tested")]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    type Text = AsciiMetadataValue;
    type Blob = BinaryMetadataValue;

    /// A binary value with these Base64 characters.
    fn base64(encoded: &str) -> Blob {
        Blob::of(encoded.parse().unwrap())
    }

    #[test]
    fn text_is_kept_and_control_characters_are_refused() {
        let check = |text: &str| {
            let value: Text = text.parse().unwrap();
            assert_eq!(
                (value.to_str().unwrap(), value.as_bytes(), value.len()),
                (text, text.as_bytes(), text.len())
            );
            assert_eq!(
                (value.to_bytes().unwrap(), value.is_empty()),
                (text.to_owned().into(), text.is_empty())
            );
            assert_eq!(Text::try_from(text.as_bytes()).unwrap(), value);
        };
        ["", "a", "a b\tc", "~!"].into_iter().for_each(check);
        assert!("a\n".parse::<Text>().is_err() && Text::try_from(&b"\0"[..]).is_err());
        assert!("caf\u{e9}".parse::<Text>().is_ok(), "as HeaderValue and tonic");
        let opaque = Text::try_from(&[0xe9_u8]).unwrap();
        assert!(opaque.to_str().is_err());
    }

    #[test]
    fn bytes_are_base64_without_padding() {
        let check = |value: &[u8], encoded: &str| {
            let made = Blob::from_bytes(value);
            assert_eq!(made.as_encoded_bytes(), encoded.as_bytes());
            assert_eq!(
                (made.to_bytes().unwrap(), made.is_empty()),
                (value.to_vec().into(), value.is_empty())
            );
        };
        check(b"", "");
        check(b"a", "YQ");
        check(b"ab", "YWI");
        check(b"abc", "YWJj");
        check(&[0xfb, 0xff], "+/8");
        for padded in ["YQ==", "YQ=", "YQ"] {
            assert_eq!(base64(padded).to_bytes().unwrap(), "a");
        }
        assert!(base64("=").is_empty() && base64("?").to_bytes().is_err());
        assert_eq!(Blob::from_static("YQ=="), b"a"[..]);
    }

    #[test]
    #[should_panic(expected = "invalid Base64")]
    fn static_binary_value_must_be_base64() {
        Blob::from_static("?");
    }

    #[test]
    fn equal_values_hash_equally() {
        let state = std::hash::RandomState::new();
        let check = |a: &Blob, b: &Blob, are_equal: bool| {
            assert_eq!(a == b, are_equal, "{a:?} {b:?}");
            assert_eq!(state.hash_one(a) == state.hash_one(b), are_equal);
        };
        check(&base64("YQ"), &base64("YQ=="), true);
        check(&base64("YQ"), &base64("YW"), true); // Unused bits differ.
        check(&base64("YQ"), &base64("Yg"), false);
        check(&base64("?"), &base64("?"), true);
        check(&base64("?"), &base64("??"), false);
        check(&base64("?"), &base64("YQ"), false);
    }

    #[test]
    fn values_compare_with_text_and_bytes() {
        let text = Text::from_static("b");
        assert!(text == "b" && text == *"b" && text == String::from("b") && text == b"b"[..] && "b" == text);
        assert!(text > *"a" && text < *"c" && text > &b"a"[..] && "a" < text && String::from("a") < text);
        assert!(text > Text::from_static("a") && &text > Text::from_static("a"));
        let binary = Blob::from_bytes(b"b");
        assert!(binary == b"b"[..] && binary == "b" && binary != "Yg");
        assert!(&binary == binary.clone() && binary.clone() == &binary);
    }

    #[test]
    fn secrets_are_not_shown() {
        let mut value = Blob::from_bytes(b"secret");
        assert_eq!(format!("{value:?} {:?}", base64("?")), "b\"secret\" b[invalid]\"?\"");
        value.set_sensitive(true);
        assert!(value.is_sensitive());
        assert_eq!(format!("{value:?}"), "Sensitive");
    }

    #[test]
    fn numbers_and_keys_are_text() {
        assert_eq!(
            (Text::from(-1_i64), Text::from(u64::MAX)),
            ("-1".parse().unwrap(), u64::MAX.to_string().parse().unwrap())
        );
        assert_eq!(Text::from_key(MetadataKey::<Binary>::from_static("a-bin")), "a-bin");
    }
}
