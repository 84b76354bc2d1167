//! [`MetadataMap`].

use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderName, TE};

use super::entry::Entry;
use super::errors::InvalidMetadataKey;
use super::iter::{GetAll, Iter, IterMut, Keys, Values, ValuesMut};
use super::{
    AsEncodingAgnosticMetadataKey, AsMetadataKey, Ascii, Binary, IntoMetadataKey, MetadataValue,
    ValueEncoding,
};

/// The custom metadata of a call: any number of values for each key.
///
/// It wraps a [`HeaderMap`]. Methods ending in `_bin` are for keys with binary values, others for text.
///
/// ```
/// use thalweg_core::metadata::{MetadataMap, MetadataValue};
///
/// let mut metadata = MetadataMap::new();
/// metadata.insert("user", "amber".parse()?);
/// metadata.insert_bin("trace-bin", MetadataValue::from_bytes(b"\x01\x02"));
/// assert_eq!(metadata.get("user").unwrap(), "amber");
/// assert_eq!(metadata.get_bin("trace-bin").unwrap().to_bytes()?, b"\x01\x02"[..]);
/// assert!(metadata.get("trace-bin").is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MetadataMap {
    headers: HeaderMap,
}

impl MetadataMap {
    /// Fields that gRPC writes itself.
    const RESERVED: [HeaderName; 5] = [
        TE,
        CONTENT_TYPE,
        HeaderName::from_static("grpc-message"),
        HeaderName::from_static("grpc-message-type"),
        HeaderName::from_static("grpc-status"),
    ];

    /// Creates an empty map. Nothing is allocated.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty map with room for so many values.
    pub fn with_capacity(capacity: usize) -> Self {
        Self::from_headers(HeaderMap::with_capacity(capacity))
    }

    /// Takes headers. Values of `-bin` keys are Base64.
    pub fn from_headers(headers: HeaderMap) -> Self {
        Self { headers }
    }

    /// Returns the headers.
    pub fn into_headers(self) -> HeaderMap {
        self.headers
    }

    /// Returns the headers without those that gRPC writes itself.
    #[doc(hidden)]
    pub fn into_sanitized_headers(mut self) -> HeaderMap {
        for name in &Self::RESERVED {
            self.headers.remove(name);
        }
        self.headers
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.headers.len()
    }

    /// Returns the number of keys.
    pub fn keys_len(&self) -> usize {
        self.headers.keys_len()
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// Removes all values, and keeps the memory.
    pub fn clear(&mut self) {
        self.headers.clear();
    }

    /// Returns how many values fit without another allocation.
    pub fn capacity(&self) -> usize {
        self.headers.capacity()
    }

    /// Makes room for so many more values.
    ///
    /// # Panics
    ///
    /// If more than 32,768 values would have to fit.
    pub fn reserve(&mut self, additional: usize) {
        self.headers.reserve(additional);
    }

    /// Returns the first text value of a key.
    pub fn get<K: AsMetadataKey<Ascii>>(&self, key: K) -> Option<&MetadataValue<Ascii>> {
        self.headers.get(key.name()?).map(MetadataValue::of_ref)
    }

    /// Returns the first binary value of a key.
    pub fn get_bin<K: AsMetadataKey<Binary>>(&self, key: K) -> Option<&MetadataValue<Binary>> {
        self.headers.get(key.name()?).map(MetadataValue::of_ref)
    }

    /// Returns the first text value of a key.
    pub fn get_mut<K: AsMetadataKey<Ascii>>(&mut self, key: K) -> Option<&mut MetadataValue<Ascii>> {
        self.headers.get_mut(key.name()?).map(MetadataValue::of_mut)
    }

    /// Returns the first binary value of a key.
    pub fn get_bin_mut<K: AsMetadataKey<Binary>>(&mut self, key: K) -> Option<&mut MetadataValue<Binary>> {
        self.headers.get_mut(key.name()?).map(MetadataValue::of_mut)
    }

    /// Returns all text values of a key, in the order in which they were added.
    pub fn get_all<K: AsMetadataKey<Ascii>>(&self, key: K) -> GetAll<'_, Ascii> {
        GetAll::new(key.name().map(|name| self.headers.get_all(name)))
    }

    /// Returns all binary values of a key, in the order in which they were added.
    pub fn get_all_bin<K: AsMetadataKey<Binary>>(&self, key: K) -> GetAll<'_, Binary> {
        GetAll::new(key.name().map(|name| self.headers.get_all(name)))
    }

    /// Returns whether a key has values.
    pub fn contains_key<K: AsEncodingAgnosticMetadataKey>(&self, key: K) -> bool {
        self.headers.contains_key(key.name())
    }

    /// Returns each value with its key, in any order; the values of a key are together.
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(self.headers.iter())
    }

    /// Returns each value with its key, in any order; the values of a key are together.
    pub fn iter_mut(&mut self) -> IterMut<'_> {
        IterMut::new(self.headers.iter_mut())
    }

    /// Returns each key once, in any order.
    pub fn keys(&self) -> Keys<'_> {
        Keys::new(self.headers.keys())
    }

    /// Returns each value, in any order.
    pub fn values(&self) -> Values<'_> {
        Values::new(self.headers.iter())
    }

    /// Returns each value, in any order.
    pub fn values_mut(&mut self) -> ValuesMut<'_> {
        ValuesMut::new(self.headers.iter_mut())
    }

    /// Returns the place of a key with text values.
    pub fn entry<K: AsMetadataKey<Ascii>>(&mut self, key: K) -> Result<Entry<'_, Ascii>, InvalidMetadataKey> {
        self.entry_of(key)
    }

    /// Returns the place of a key with binary values.
    pub fn entry_bin<K: AsMetadataKey<Binary>>(
        &mut self,
        key: K,
    ) -> Result<Entry<'_, Binary>, InvalidMetadataKey> {
        self.entry_of(key)
    }

    fn entry_of<VE: ValueEncoding, K: AsMetadataKey<VE>>(
        &mut self,
        key: K,
    ) -> Result<Entry<'_, VE>, InvalidMetadataKey> {
        let name = key.name().ok_or(InvalidMetadataKey)?;
        self.headers.try_entry(name).map(Entry::new).map_err(|_| InvalidMetadataKey)
    }

    /// Sets the text value of a key. Its previous values are removed, and the first of them is returned.
    ///
    /// # Panics
    ///
    /// If a static key is invalid: not in lower case, or one that ends in `-bin`.
    pub fn insert<K: IntoMetadataKey<Ascii>>(
        &mut self,
        key: K,
        value: MetadataValue<Ascii>,
    ) -> Option<MetadataValue<Ascii>> {
        self.headers.insert(key.name(), value.field).map(MetadataValue::of)
    }

    /// Sets the binary value of a key. Its previous values are removed, and the first of them is returned.
    ///
    /// # Panics
    ///
    /// If a static key is invalid: not in lower case, or one that does not end in `-bin`.
    pub fn insert_bin<K: IntoMetadataKey<Binary>>(
        &mut self,
        key: K,
        value: MetadataValue<Binary>,
    ) -> Option<MetadataValue<Binary>> {
        self.headers.insert(key.name(), value.field).map(MetadataValue::of)
    }

    /// Adds a text value to a key. Returns whether the key had values before.
    ///
    /// # Panics
    ///
    /// The same as for [`insert`](Self::insert).
    pub fn append<K: IntoMetadataKey<Ascii>>(&mut self, key: K, value: MetadataValue<Ascii>) -> bool {
        self.headers.append(key.name(), value.field)
    }

    /// Adds a binary value to a key. Returns whether the key had values before.
    ///
    /// # Panics
    ///
    /// The same as for [`insert_bin`](Self::insert_bin).
    pub fn append_bin<K: IntoMetadataKey<Binary>>(&mut self, key: K, value: MetadataValue<Binary>) -> bool {
        self.headers.append(key.name(), value.field)
    }

    /// Removes the text values of a key, and returns the first.
    pub fn remove<K: AsMetadataKey<Ascii>>(&mut self, key: K) -> Option<MetadataValue<Ascii>> {
        self.headers.remove(key.name()?).map(MetadataValue::of)
    }

    /// Removes the binary values of a key, and returns the first.
    pub fn remove_bin<K: AsMetadataKey<Binary>>(&mut self, key: K) -> Option<MetadataValue<Binary>> {
        self.headers.remove(key.name()?).map(MetadataValue::of)
    }

    /// Takes the values of `other`; those of the same keys are replaced.
    #[doc(hidden)]
    pub fn merge(&mut self, other: Self) {
        self.headers.extend(other.headers);
    }
}

impl AsRef<HeaderMap> for MetadataMap {
    fn as_ref(&self) -> &HeaderMap {
        &self.headers
    }
}

impl AsMut<HeaderMap> for MetadataMap {
    fn as_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }
}

impl<'a> IntoIterator for &'a MetadataMap {
    type Item = super::KeyAndValueRef<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut MetadataMap {
    type Item = super::KeyAndMutValueRef<'a>;
    type IntoIter = IterMut<'a>;

    fn into_iter(self) -> IterMut<'a> {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests;
