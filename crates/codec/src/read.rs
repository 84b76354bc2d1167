//! Reads everything that a decoder left in the bytes: each field, down to the last number and the length of each
//! string.
//!
//! An owned message was read when it was decoded. A view or our engine's message was not: its user still reads each
//! field, so its time includes that.

use buffa::{EnumValue, Enumeration, MapView, MessageFieldView, RepeatedView};
use thalweg_protobuf::{MessageRef, Value};

/// Reads a value as a number: the sum of all numbers, enum numbers and string lengths. Floats count by their bits, and
/// unset fields as 0, so that all decoders of a message agree.
pub(crate) trait Read {
    fn read(&self) -> u64;
}

/// Sums up everything read.
#[inline]
fn sum(parts: impl Iterator<Item = u64>) -> u64 {
    parts.fold(0, u64::wrapping_add)
}

/// Reads numbers by a sign-preserving cast.
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

/// Reads the set fields of our engine's message by reflection, like a program that does not know the type.
impl Read for MessageRef<'_> {
    #[inline]
    fn read(&self) -> u64 {
        sum(self.fields().map(|(_, value)| value.read()))
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
            Value::List(list) => sum(list.iter().map(|value| value.read())),
            Value::Map(map) => sum(map.iter().map(|(key, value)| key.read().wrapping_add(value.read()))),
        }
    }
}

impl<T: Read> Read for RepeatedView<'_, T> {
    #[inline]
    fn read(&self) -> u64 {
        sum(self.iter().map(Read::read))
    }
}

impl<K: Read, V: Read> Read for MapView<'_, K, V> {
    #[inline]
    fn read(&self) -> u64 {
        sum(self.iter().map(|(key, value)| key.read().wrapping_add(value.read())))
    }
}

impl<V: Read> Read for MessageFieldView<V> {
    #[inline]
    fn read(&self) -> u64 {
        self.as_option().map_or(0, Read::read)
    }
}

/// Reads a oneof or a field with presence.
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

/// Reads all fields of buffa's views. A missing field is a compile error.
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
