//! The place of one key in a map.

use std::marker::PhantomData;

use http::header::{self, HeaderValue};

use super::iter::{ValueDrain, ValueIter, ValueIterMut};
use super::{Ascii, MetadataKey, MetadataValue, ValueEncoding};

/// The place of a key in a map, with or without values.
#[derive(Debug)]
pub enum Entry<'a, VE: ValueEncoding> {
    /// The key has values.
    Occupied(OccupiedEntry<'a, VE>),
    /// The key has no values.
    Vacant(VacantEntry<'a, VE>),
}

/// The place of a key without values.
#[derive(Debug)]
pub struct VacantEntry<'a, VE: ValueEncoding> {
    place: header::VacantEntry<'a, HeaderValue>,
    encoding: PhantomData<VE>,
}

/// The place of a key with values.
#[derive(Debug)]
pub struct OccupiedEntry<'a, VE: ValueEncoding> {
    place: header::OccupiedEntry<'a, HeaderValue>,
    encoding: PhantomData<VE>,
}

impl<'a, VE: ValueEncoding> Entry<'a, VE> {
    pub(super) fn new(place: header::Entry<'a, HeaderValue>) -> Self {
        match place {
            header::Entry::Occupied(place) => Self::Occupied(OccupiedEntry::new(place)),
            header::Entry::Vacant(place) => Self::Vacant(VacantEntry { place, encoding: PhantomData }),
        }
    }

    /// Returns the first value, or adds this one.
    pub fn or_insert(self, default: MetadataValue<VE>) -> &'a mut MetadataValue<VE> {
        self.or_insert_with(|| default)
    }

    /// Returns the first value, or adds the one that `default` returns.
    pub fn or_insert_with<F: FnOnce() -> MetadataValue<VE>>(self, default: F) -> &'a mut MetadataValue<VE> {
        match self {
            Self::Occupied(entry) => entry.into_mut(),
            Self::Vacant(entry) => entry.insert(default()),
        }
    }

    /// Returns the key.
    pub fn key(&self) -> &MetadataKey<VE> {
        match self {
            Self::Occupied(entry) => entry.key(),
            Self::Vacant(entry) => entry.key(),
        }
    }
}

impl<'a, VE: ValueEncoding> VacantEntry<'a, VE> {
    /// Returns the key.
    pub fn key(&self) -> &MetadataKey<VE> {
        MetadataKey::of_ref(self.place.key())
    }

    /// Returns the key.
    pub fn into_key(self) -> MetadataKey<VE> {
        MetadataKey::of(self.place.into_key())
    }

    /// Sets the value, and returns its place.
    pub fn insert(self, value: MetadataValue<VE>) -> &'a mut MetadataValue<VE> {
        MetadataValue::of_mut(self.place.insert(value.field))
    }

    /// Sets the value, and returns the key's place. Its encoding is text in any case, as in tonic.
    pub fn insert_entry(self, value: MetadataValue<VE>) -> OccupiedEntry<'a, Ascii> {
        OccupiedEntry::new(self.place.insert_entry(value.field))
    }
}

impl<'a, VE: ValueEncoding> OccupiedEntry<'a, VE> {
    fn new(place: header::OccupiedEntry<'a, HeaderValue>) -> Self {
        Self { place, encoding: PhantomData }
    }

    /// Returns the key.
    pub fn key(&self) -> &MetadataKey<VE> {
        MetadataKey::of_ref(self.place.key())
    }

    /// Returns the first value.
    pub fn get(&self) -> &MetadataValue<VE> {
        MetadataValue::of_ref(self.place.get())
    }

    /// Returns the first value.
    pub fn get_mut(&mut self) -> &mut MetadataValue<VE> {
        MetadataValue::of_mut(self.place.get_mut())
    }

    /// Returns the first value for as long as the map is borrowed.
    pub fn into_mut(self) -> &'a mut MetadataValue<VE> {
        MetadataValue::of_mut(self.place.into_mut())
    }

    /// Replaces all values by this one, and returns the first of them.
    pub fn insert(&mut self, value: MetadataValue<VE>) -> MetadataValue<VE> {
        MetadataValue::of(self.place.insert(value.field))
    }

    /// Replaces all values by this one, and returns them.
    pub fn insert_mult(&mut self, value: MetadataValue<VE>) -> ValueDrain<'_, VE> {
        let replaced = ValueDrain::new(self.place.iter());
        self.place.insert(value.field);
        replaced
    }

    /// Adds a value.
    pub fn append(&mut self, value: MetadataValue<VE>) {
        self.place.append(value.field);
    }

    /// Removes all values, and returns the first.
    pub fn remove(self) -> MetadataValue<VE> {
        MetadataValue::of(self.place.remove())
    }

    /// Removes all values, and returns the key and the first.
    pub fn remove_entry(self) -> (MetadataKey<VE>, MetadataValue<VE>) {
        let (name, field) = self.place.remove_entry();
        (MetadataKey::of(name), MetadataValue::of(field))
    }

    /// Removes all values, and returns the key and them.
    pub fn remove_entry_mult(self) -> (MetadataKey<VE>, ValueDrain<'a, VE>) {
        let removed = ValueDrain::new(self.place.iter());
        (MetadataKey::of(self.place.remove_entry().0), removed)
    }

    /// Returns all values.
    pub fn iter(&self) -> ValueIter<'_, VE> {
        ValueIter::new(Some(self.place.iter()))
    }

    /// Returns all values.
    pub fn iter_mut(&mut self) -> ValueIterMut<'_, VE> {
        ValueIterMut::new(self.place.iter_mut())
    }
}

impl<'a, VE: ValueEncoding + 'a> IntoIterator for OccupiedEntry<'a, VE> {
    type Item = &'a mut MetadataValue<VE>;
    type IntoIter = ValueIterMut<'a, VE>;

    fn into_iter(self) -> ValueIterMut<'a, VE> {
        ValueIterMut::new(self.place.into_iter())
    }
}

impl<'a, 'b: 'a, VE: ValueEncoding> IntoIterator for &'b OccupiedEntry<'a, VE> {
    type Item = &'a MetadataValue<VE>;
    type IntoIter = ValueIter<'a, VE>;

    fn into_iter(self) -> ValueIter<'a, VE> {
        self.iter()
    }
}

impl<'a, 'b: 'a, VE: ValueEncoding> IntoIterator for &'b mut OccupiedEntry<'a, VE> {
    type Item = &'a mut MetadataValue<VE>;
    type IntoIter = ValueIterMut<'a, VE>;

    fn into_iter(self) -> ValueIterMut<'a, VE> {
        self.iter_mut()
    }
}
