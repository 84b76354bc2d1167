//! Reading all of what a decoder left in the bytes: each field, down to the last number and the length of each string.
//!
//! A message that owns what it holds has been read when it was made. A view, or our engine's message, has not: its user
//! still asks for each field, and its time is told with that.

use buffa::{EnumValue, Enumeration, MapView, MessageFieldView, RepeatedView};
use thalweg_protobuf::{MessageRef, Value};

/// What is read of it, as a number: all numbers, enums by theirs, and lengths of strings, added up. Fractions count by
/// their bits, and what is not set by 0, so that all decoders of a message come to the same.
pub(crate) trait Read {
    fn read(&self) -> u64;
}

/// The sum of all that is read.
#[inline]
fn all(parts: impl Iterator<Item = u64>) -> u64 {
    parts.fold(0, u64::wrapping_add)
}

/// Reads numbers by a cast that keeps their sign.
macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Read for $number {
            #[inline]
            fn read(&self) -> u64 {
                *self as u64
            }
        }
    )*};
}

numbers!(bool, i32, u32, i64, u64);

impl Read for f32 {
    #[inline]
    fn read(&self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Read for f64 {
    #[inline]
    fn read(&self) -> u64 {
        self.to_bits()
    }
}

impl Read for &str {
    #[inline]
    fn read(&self) -> u64 {
        self.len() as u64
    }
}

/// Our engine's: the fields that are set, by the reflection that a program has which does not know the type.
impl Read for MessageRef<'_> {
    #[inline]
    fn read(&self) -> u64 {
        all(self.fields().map(|(_, value)| value.read()))
    }
}

impl Read for Value<'_> {
    #[inline]
    fn read(&self) -> u64 {
        match self {
            Value::Bool(value) => value.read(),
            Value::I32(value) | Value::Enum(value) => value.read(),
            Value::I64(value) => value.read(),
            Value::U32(value) => value.read(),
            Value::U64(value) => value.read(),
            Value::F32(value) => value.read(),
            Value::F64(value) => value.read(),
            Value::String(text) => text.read(),
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::Message(message) => message.read(),
            Value::List(list) => all(list.iter().map(|value| value.read())),
            Value::Map(map) => all(map.iter().map(|(key, value)| key.read().wrapping_add(value.read()))),
        }
    }
}

impl<T: Read> Read for RepeatedView<'_, T> {
    #[inline]
    fn read(&self) -> u64 {
        all(self.iter().map(Read::read))
    }
}

impl<K: Read, V: Read> Read for MapView<'_, K, V> {
    #[inline]
    fn read(&self) -> u64 {
        all(self.iter().map(|(key, value)| key.read().wrapping_add(value.read())))
    }
}

impl<V: Read> Read for MessageFieldView<V> {
    #[inline]
    fn read(&self) -> u64 {
        self.as_option().map_or(0, Read::read)
    }
}

/// A oneof, and a field that knows whether it is set.
impl<T: Read> Read for Option<T> {
    #[inline]
    fn read(&self) -> u64 {
        self.as_ref().map_or(0, Read::read)
    }
}

impl<E: Enumeration> Read for EnumValue<E> {
    #[inline]
    fn read(&self) -> u64 {
        self.to_i32().read()
    }
}

/// Reads all fields of views of buffa's. One that is not named here is an error when this is compiled.
macro_rules! read_views {
    ($($view:ident { $($field:ident),* })*) => {$(
        impl $crate::read::Read for $view<'_> {
            #[inline]
            fn read(&self) -> u64 {
                let $view { $($field,)* __buffa_unknown_fields: _ } = self;
                0_u64 $(.wrapping_add($crate::read::Read::read($field)))*
            }
        }
    )*};
}

pub(crate) use read_views;
