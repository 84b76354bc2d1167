//! Iterators over keys and values, each with its encoding.

use std::marker::PhantomData;

use http::header::{self, HeaderName, HeaderValue};

use super::{Ascii, Binary, MetadataKey, MetadataValue, ValueEncoding};

/// A value with its key.
#[derive(Debug)]
pub enum KeyAndValueRef<'a> {
    /// Text.
    Ascii(&'a MetadataKey<Ascii>, &'a MetadataValue<Ascii>),
    /// Bytes.
    Binary(&'a MetadataKey<Binary>, &'a MetadataValue<Binary>),
}

/// A value that may be changed, with its key.
#[derive(Debug)]
pub enum KeyAndMutValueRef<'a> {
    /// Text.
    Ascii(&'a MetadataKey<Ascii>, &'a mut MetadataValue<Ascii>),
    /// Bytes.
    Binary(&'a MetadataKey<Binary>, &'a mut MetadataValue<Binary>),
}

/// A key.
#[derive(Debug)]
pub enum KeyRef<'a> {
    /// A key of text.
    Ascii(&'a MetadataKey<Ascii>),
    /// A key of bytes.
    Binary(&'a MetadataKey<Binary>),
}

/// A value.
#[derive(Debug)]
pub enum ValueRef<'a> {
    /// Text.
    Ascii(&'a MetadataValue<Ascii>),
    /// Bytes.
    Binary(&'a MetadataValue<Binary>),
}

/// A value that may be changed.
#[derive(Debug)]
pub enum ValueRefMut<'a> {
    /// Text.
    Ascii(&'a mut MetadataValue<Ascii>),
    /// Bytes.
    Binary(&'a mut MetadataValue<Binary>),
}

fn is_binary(name: &HeaderName) -> bool {
    Binary::is_valid_key(name.as_str())
}

fn pair<'a>((name, field): (&'a HeaderName, &'a HeaderValue)) -> KeyAndValueRef<'a> {
    if is_binary(name) {
        KeyAndValueRef::Binary(MetadataKey::of_ref(name), MetadataValue::of_ref(field))
    } else {
        KeyAndValueRef::Ascii(MetadataKey::of_ref(name), MetadataValue::of_ref(field))
    }
}

fn pair_mut<'a>((name, field): (&'a HeaderName, &'a mut HeaderValue)) -> KeyAndMutValueRef<'a> {
    if is_binary(name) {
        KeyAndMutValueRef::Binary(MetadataKey::of_ref(name), MetadataValue::of_mut(field))
    } else {
        KeyAndMutValueRef::Ascii(MetadataKey::of_ref(name), MetadataValue::of_mut(field))
    }
}

fn key(name: &HeaderName) -> KeyRef<'_> {
    if is_binary(name) {
        KeyRef::Binary(MetadataKey::of_ref(name))
    } else {
        KeyRef::Ascii(MetadataKey::of_ref(name))
    }
}

fn value<'a>(field: (&'a HeaderName, &'a HeaderValue)) -> ValueRef<'a> {
    match pair(field) {
        KeyAndValueRef::Ascii(_, value) => ValueRef::Ascii(value),
        KeyAndValueRef::Binary(_, value) => ValueRef::Binary(value),
    }
}

fn value_mut<'a>(field: (&'a HeaderName, &'a mut HeaderValue)) -> ValueRefMut<'a> {
    match pair_mut(field) {
        KeyAndMutValueRef::Ascii(_, value) => ValueRefMut::Ascii(value),
        KeyAndMutValueRef::Binary(_, value) => ValueRefMut::Binary(value),
    }
}

/// An iterator over fields whose names tell the encoding.
macro_rules! iterator {
    ($(#[$doc:meta] $iterator:ident: $fields:ident -> $item:ident by $of:ident;)*) => { $(
        #[$doc]
        #[derive(Debug)]
        pub struct $iterator<'a> {
            fields: header::$fields<'a, HeaderValue>,
        }

        impl<'a> $iterator<'a> {
            pub(super) fn new(fields: header::$fields<'a, HeaderValue>) -> Self {
                Self { fields }
            }
        }

        impl<'a> Iterator for $iterator<'a> {
            type Item = $item<'a>;

            fn next(&mut self) -> Option<$item<'a>> {
                self.fields.next().map($of)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.fields.size_hint()
            }
        }
    )* };
}

iterator! {
    /// Values with their keys.
    Iter: Iter -> KeyAndValueRef by pair;
    /// Values that may be changed, with their keys.
    IterMut: IterMut -> KeyAndMutValueRef by pair_mut;
    /// Keys.
    Keys: Keys -> KeyRef by key;
    /// Values.
    Values: Iter -> ValueRef by value;
    /// Values that may be changed.
    ValuesMut: IterMut -> ValueRefMut by value_mut;
}

impl ExactSizeIterator for Keys<'_> {}

/// All values of a key.
#[derive(Debug)]
pub struct GetAll<'a, VE: ValueEncoding> {
    fields: Option<header::GetAll<'a, HeaderValue>>,
    encoding: PhantomData<VE>,
}

impl<'a, VE: ValueEncoding> GetAll<'a, VE> {
    pub(super) fn new(fields: Option<header::GetAll<'a, HeaderValue>>) -> Self {
        Self { fields, encoding: PhantomData }
    }

    /// Returns the values in the order in which they were added.
    pub fn iter(&self) -> ValueIter<'a, VE> {
        ValueIter::new(self.fields.as_ref().map(header::GetAll::iter))
    }
}

impl<VE: ValueEncoding> PartialEq for GetAll<'_, VE> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, VE: ValueEncoding + 'a> IntoIterator for GetAll<'a, VE> {
    type Item = &'a MetadataValue<VE>;
    type IntoIter = ValueIter<'a, VE>;

    fn into_iter(self) -> ValueIter<'a, VE> {
        self.iter()
    }
}

impl<'a, 'b: 'a, VE: ValueEncoding> IntoIterator for &'b GetAll<'a, VE> {
    type Item = &'a MetadataValue<VE>;
    type IntoIter = ValueIter<'a, VE>;

    fn into_iter(self) -> ValueIter<'a, VE> {
        self.iter()
    }
}

/// Values of one key.
#[derive(Debug)]
pub struct ValueIter<'a, VE: ValueEncoding> {
    fields: Option<header::ValueIter<'a, HeaderValue>>,
    encoding: PhantomData<VE>,
}

impl<'a, VE: ValueEncoding> ValueIter<'a, VE> {
    pub(super) fn new(fields: Option<header::ValueIter<'a, HeaderValue>>) -> Self {
        Self { fields, encoding: PhantomData }
    }
}

impl<'a, VE: ValueEncoding + 'a> Iterator for ValueIter<'a, VE> {
    type Item = &'a MetadataValue<VE>;

    fn next(&mut self) -> Option<Self::Item> {
        self.fields.as_mut()?.next().map(MetadataValue::of_ref)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.fields.as_ref().map_or((0, Some(0)), Iterator::size_hint)
    }
}

impl<'a, VE: ValueEncoding + 'a> DoubleEndedIterator for ValueIter<'a, VE> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.fields.as_mut()?.next_back().map(MetadataValue::of_ref)
    }
}

/// Values of one key that may be changed.
#[derive(Debug)]
pub struct ValueIterMut<'a, VE: ValueEncoding> {
    fields: header::ValueIterMut<'a, HeaderValue>,
    encoding: PhantomData<VE>,
}

impl<'a, VE: ValueEncoding> ValueIterMut<'a, VE> {
    pub(super) fn new(fields: header::ValueIterMut<'a, HeaderValue>) -> Self {
        Self { fields, encoding: PhantomData }
    }
}

impl<'a, VE: ValueEncoding + 'a> Iterator for ValueIterMut<'a, VE> {
    type Item = &'a mut MetadataValue<VE>;

    fn next(&mut self) -> Option<Self::Item> {
        self.fields.next().map(MetadataValue::of_mut)
    }
}

impl<'a, VE: ValueEncoding + 'a> DoubleEndedIterator for ValueIterMut<'a, VE> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.fields.next_back().map(MetadataValue::of_mut)
    }
}

/// Values that were removed.
#[derive(Debug)]
pub struct ValueDrain<'a, VE: ValueEncoding> {
    fields: std::vec::IntoIter<HeaderValue>,
    of: PhantomData<&'a VE>,
}

impl<VE: ValueEncoding> ValueDrain<'_, VE> {
    /// Takes copies of the values: http 1.5.0 panics when it drains three or more values of a key.
    pub(super) fn new(fields: header::ValueIter<'_, HeaderValue>) -> Self {
        Self { fields: fields.cloned().collect::<Vec<_>>().into_iter(), of: PhantomData }
    }
}

impl<VE: ValueEncoding> Iterator for ValueDrain<'_, VE> {
    type Item = MetadataValue<VE>;

    fn next(&mut self) -> Option<Self::Item> {
        self.fields.next().map(MetadataValue::of)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.fields.size_hint()
    }
}
