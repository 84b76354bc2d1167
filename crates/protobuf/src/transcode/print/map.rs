//! Maps and their wire entries.

use super::records::{End, following, skip};
use super::unordered::PrintInterrupt;
use super::{Printer, not_text};
use crate::schema::Kind;
use crate::schema::number::read_number;
use crate::schema::pool::Pool;
use crate::schema::table::{Entry, Table};
use crate::transcode::keys::{Keys, SeenFields};
use crate::transcode::sink::{NotText, Sink};
use crate::wire::{Reader, WireError, WireErrorKind};

impl<'s, S: Sink> Printer<'s, S> {
    pub(super) fn map(
        &mut self,
        field: &'s Entry,
        reader: &mut Reader<'_>,
        depth: usize,
        seen: &mut SeenFields,
        open: &mut S::OpenContainer,
    ) -> Result<(), PrintInterrupt> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(reader.error(WireErrorKind::TooDeep).into());
        };
        let mut map = None;
        let mut keys = Keys::new();
        loop {
            let pair = Pair::read(self.pool.table(field), &mut reader.nested()?)?;
            let value = pair.value_field;
            let is_known =
                !value.is_closed() || self.has(value, pair.value.number_or_default(self.pool, value));
            if is_known {
                if !keys.insert(pair.key) {
                    return Err(PrintInterrupt::Unordered);
                }
                if map.is_none() {
                    if seen.set(field.slot) {
                        return Err(PrintInterrupt::Unordered);
                    }
                    self.name(field, open);
                }
                let map = map.get_or_insert_with(|| self.sink.begin_map());
                self.pair(&pair, map, depth)?;
            }
            if following(field, reader)?.is_none() {
                break;
            }
        }
        if let Some(map) = map {
            self.sink.end_map(map);
        }
        Ok(())
    }

    /// Prints a key and its value.
    pub(super) fn pair(
        &mut self,
        pair: &Pair<'s, '_>,
        map: &mut S::OpenContainer,
        depth: usize,
    ) -> Result<(), PrintInterrupt> {
        let key_field = pair.key_field;
        match (pair.key, key_field.kind) {
            (Key::Text(key), _) => {
                self.sink.text_key(map, key).map_err(|NotText| not_text(self.pool, key_field))?;
            }
            (Key::Number(key), Kind::Bool) => self.sink.bool_key(map, key != 0),
            (Key::Number(key), Kind::Uint32 | Kind::Uint64 | Kind::Fixed32 | Kind::Fixed64) => {
                self.sink.uint_key(map, key);
            }
            (Key::Number(key), Kind::Sfixed32) => self.sink.int_key(map, (key as i32).into()),
            (Key::Number(key), _) => self.sink.int_key(map, key as i64),
        }
        self.put_value(pair.value_field, pair.value, depth)
    }

    /// Prints the value of a field, or its default.
    #[inline(always)]
    pub(super) fn put_value(
        &mut self,
        field: &'s Entry,
        value: Value<'_>,
        depth: usize,
    ) -> Result<(), PrintInterrupt> {
        match (value, field.kind) {
            (Value::Nested(mut reader), _) => {
                self.message(self.pool.table(field), &mut reader, End::Bytes, depth)
            }
            (Value::Absent, Kind::Message | Kind::Group) => {
                self.message(self.pool.table(field), &mut Reader::new(&[]), End::Bytes, depth)
            }
            (Value::Bytes(value), _) => self.text_or_bytes(field, value),
            (Value::Absent, Kind::String | Kind::Bytes) => self.text_or_bytes(field, &[]),
            (value, _) => {
                self.number(field, value.number_or_default(self.pool, field));
                Ok(())
            }
        }
    }
}

/// One entry of a map, with nested content not yet decoded.
pub(super) struct Pair<'s, 'w> {
    pub(super) key_field: &'s Entry,
    pub(super) value_field: &'s Entry,
    pub(super) key: Key<'w>,
    pub(super) value: Value<'w>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key<'w> {
    Number(u64),
    Text(&'w [u8]),
}

#[derive(Clone, Copy)]
pub(super) enum Value<'w> {
    Absent,
    Number(u64),
    Bytes(&'w [u8]),
    Nested(Reader<'w>),
}

impl<'w> Value<'w> {
    /// Reads the value after the tag of a field.
    #[inline(always)]
    pub(super) fn read(field: &Entry, reader: &mut Reader<'w>) -> Result<Value<'w>, WireError> {
        Ok(match field.kind {
            Kind::String | Kind::Bytes => Value::Bytes(reader.len_prefixed()?),
            Kind::Message | Kind::Group => Value::Nested(reader.nested()?),
            _ => Value::Number(read_number(field.element, reader)?),
        })
    }

    /// Returns the number or its default. An open enum's first value is zero; a closed enum may start with another.
    #[inline]
    fn number_or_default(self, pool: &Pool, field: &Entry) -> u64 {
        match self {
            Value::Number(number) => number,
            _ => pool.default_word(field),
        }
    }
}

impl<'s, 'w> Pair<'s, 'w> {
    pub(super) fn read(table: &'s Table, reader: &mut Reader<'w>) -> Result<Pair<'s, 'w>, PrintInterrupt> {
        let [key_field, value_field] = table.entries() else {
            return Err(reader.error(WireErrorKind::FieldNumber).into());
        };
        let key = if key_field.kind == Kind::String { Key::Text(&[]) } else { Key::Number(0) };
        let mut pair = Pair { key_field, value_field, key, value: Value::Absent };
        while !reader.is_empty() {
            let start = reader.offset();
            let tag = reader.tag_bits()?;
            if tag == key_field.tag {
                pair.key = match key_field.kind {
                    Kind::String => Key::Text(reader.len_prefixed()?),
                    _ => Key::Number(read_number(key_field.element, reader)?),
                };
            } else if tag == value_field.tag {
                pair.value = match value_field.kind {
                    // Two messages must be merged.
                    Kind::Message if matches!(pair.value, Value::Nested(_)) => {
                        return Err(PrintInterrupt::Unordered);
                    }
                    _ => Value::read(value_field, reader)?,
                };
            } else {
                skip(tag, start, reader, End::Bytes)?;
            }
        }
        Ok(pair)
    }
}
