//! Maps, and the entries that they are on the wire.

use super::records::{End, following, number, skip};
use super::{Printer, Stop, not_text};
use crate::schema::Kind;
use crate::transcode::keys::{Keys, Seen};
use crate::transcode::sink::{NotText, Sink};
use crate::transcode::tables::{Field, Type};
use crate::wire::{Reader, WireError, WireErrorKind};

impl<'s, S: Sink> Printer<'s, S> {
    pub(super) fn map(
        &mut self,
        field: &'s Field,
        reader: &mut Reader<'_>,
        depth: usize,
        seen: &mut Seen,
        open: &mut S::Open,
    ) -> Result<(), Stop> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(reader.error(WireErrorKind::TooDeep).into());
        };
        let mut map = None;
        let mut keys = Keys::new();
        loop {
            let entry = Entry::read(self.tables.message(field.target()), &mut reader.nested()?)?;
            let value = entry.value_field;
            let is_known = !value.is_closed || self.has(value, entry.value.number_or_zero(value));
            if is_known {
                if !keys.insert(entry.key) {
                    return Err(Stop::Merge);
                }
                if map.is_none() {
                    if seen.set(field.seen) {
                        return Err(Stop::Merge);
                    }
                    self.name(field, open);
                }
                let map = map.get_or_insert_with(|| self.sink.begin_map());
                self.entry(&entry, map, depth)?;
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

    /// A key and its value.
    pub(super) fn entry(
        &mut self,
        entry: &Entry<'s, '_>,
        map: &mut S::Open,
        depth: usize,
    ) -> Result<(), Stop> {
        let key_field = entry.key_field;
        match (entry.key, key_field.kind) {
            (Key::Text(key), _) => {
                self.sink.text_key(map, key).map_err(|NotText| not_text(self.pool, key_field))?;
            }
            (Key::Number(key), Kind::Bool) => self.sink.bool_key(map, key != 0),
            (Key::Number(key), Kind::Uint32 | Kind::Uint64 | Kind::Fixed32 | Kind::Fixed64) => {
                self.sink.uint_key(map, key);
            }
            (Key::Number(key), _) => self.sink.int_key(map, key as i64),
        }
        self.put_value(entry.value_field, entry.value, depth)
    }

    /// The value of a field, or its default.
    #[inline(always)]
    pub(super) fn put_value(&mut self, field: &'s Field, value: Value<'_>, depth: usize) -> Result<(), Stop> {
        match (value, field.kind) {
            (Value::Nested(mut reader), _) => {
                self.message(self.tables.message(field.target()), &mut reader, End::Bytes, depth)
            }
            (Value::Absent, Kind::Message) => {
                self.message(self.tables.message(field.target()), &mut Reader::new(&[]), End::Bytes, depth)
            }
            (Value::Bytes(value), _) => self.text_or_bytes(field, value),
            (Value::Absent, Kind::String | Kind::Bytes) => self.text_or_bytes(field, &[]),
            (value, _) => {
                self.number(field, value.number_or_zero(field));
                Ok(())
            }
        }
    }
}

/// One entry of a map, with what is in it not yet read further.
pub(super) struct Entry<'s, 'w> {
    pub(super) key_field: &'s Field,
    pub(super) value_field: &'s Field,
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
    /// What follows the tag of a field.
    #[inline(always)]
    pub(super) fn read(field: &Field, reader: &mut Reader<'w>) -> Result<Value<'w>, WireError> {
        Ok(match field.kind {
            Kind::String | Kind::Bytes => Value::Bytes(reader.len_prefixed()?),
            Kind::Message => Value::Nested(reader.nested()?),
            kind => Value::Number(number(kind, reader)?),
        })
    }

    /// Zero is the first value of an open enum; a closed one may have another.
    #[inline]
    fn number_or_zero(self, field: &Field) -> u64 {
        match self {
            Value::Number(number) => number,
            _ => field.default_number,
        }
    }
}

impl<'s, 'w> Entry<'s, 'w> {
    pub(super) fn read(entry_type: &'s Type, reader: &mut Reader<'w>) -> Result<Entry<'s, 'w>, Stop> {
        let [key_field, value_field] = &*entry_type.fields else {
            return Err(reader.error(WireErrorKind::FieldNumber).into());
        };
        let key = if key_field.kind == Kind::String { Key::Text(&[]) } else { Key::Number(0) };
        let mut entry = Entry { key_field, value_field, key, value: Value::Absent };
        while !reader.is_empty() {
            let start = reader.offset();
            let tag = reader.tag_bits()?;
            if tag == key_field.tag {
                entry.key = match key_field.kind {
                    Kind::String => Key::Text(reader.len_prefixed()?),
                    kind => Key::Number(number(kind, reader)?),
                };
            } else if tag == value_field.tag {
                entry.value = match value_field.kind {
                    // Two would have to be merged.
                    Kind::Message if matches!(entry.value, Value::Nested(_)) => return Err(Stop::Merge),
                    _ => Value::read(value_field, reader)?,
                };
            } else {
                skip(tag, start, reader, End::Bytes)?;
            }
        }
        Ok(entry)
    }
}
