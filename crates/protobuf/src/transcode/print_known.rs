//! Well-known types, which have a form of their own in JSON.

use super::error::PrintError;
use super::keys::Keys;
use super::print::{End, Entry, Key, Printer, Stop, next_tag, number, skip};
use super::sink::Sink;
use super::tables::{Field, Type, named};
use crate::schema::{Kind, Pool, WellKnown};
use crate::text::{field_mask, time};
use crate::wire::Reader;

impl<'s, S: Sink> Printer<'s, S> {
    pub(super) fn known(
        &mut self,
        message_type: &'s Type,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), Stop> {
        let Some(known) = message_type.known else { return Ok(()) };
        match known {
            WellKnown::Any => self.any(message_type, reader, end, depth),
            WellKnown::Timestamp => {
                let (seconds, nanos) = seconds_and_nanos(message_type, reader, end)?;
                let is_in_range = self.sink.timestamp(seconds, nanos);
                check(self.pool, is_in_range, message_type, "it is out of range: from year 1 to 9999")
            }
            WellKnown::Duration => self.duration(message_type, reader, end),
            WellKnown::FieldMask => self.field_mask(message_type, reader, end),
            WellKnown::Struct => self.structure(message_type, reader, end, depth),
            WellKnown::ListValue => self.list_value(message_type, reader, end, depth),
            WellKnown::Value => self.value(message_type, reader, end, depth),
            WellKnown::Wrapper => self.wrapper(message_type, reader, end),
            WellKnown::Empty => Ok(()),
        }
    }

    fn duration(&mut self, message_type: &Type, reader: &mut Reader<'_>, end: End) -> Result<(), Stop> {
        let (seconds, nanos) = seconds_and_nanos(message_type, reader, end)?;
        let mut text = Vec::new();
        let is_in_range = time::write_duration(seconds, nanos, &mut text);
        check(
            self.pool,
            is_in_range,
            message_type,
            "it is out of range: ±315,576,000,000 s, and both parts of one sign",
        )?;
        self.ascii(&text);
        Ok(())
    }

    fn field_mask(&mut self, message_type: &Type, reader: &mut Reader<'_>, end: End) -> Result<(), Stop> {
        let (mut text, mut is_first) = (Vec::new(), true);
        each(message_type, reader, end, |_, reader| {
            let path = std::str::from_utf8(reader.len_prefixed()?).ok();
            if !is_first {
                text.push(b',');
            }
            is_first = false;
            let is_sound = path.is_some_and(|path| field_mask::to_camel(path, &mut text));
            check(self.pool, is_sound, message_type, "a path could not be read back from JSON")
        })?;
        if self.sink.text(&text).is_err() {
            return check(self.pool, false, message_type, "a path is not UTF-8");
        }
        Ok(())
    }

    fn structure(
        &mut self,
        message_type: &'s Type,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), Stop> {
        let tables = self.tables;
        let mut map = self.sink.begin_map();
        let mut keys = Keys::<Key<'_>>::new();
        while let Some(tag) = next_tag(reader, end)? {
            let Some(field) = message_type.field_of_tag(tag) else {
                skip(tag, reader.offset(), reader, end)?;
                continue;
            };
            let mut nested = reader.nested()?;
            let Some(depth) = depth.checked_sub(1) else { return Err(too_deep(reader)) };
            let entry = Entry::read(tables.message(field.target()), &mut nested)?;
            if !keys.insert(entry.key) {
                return Err(Stop::Merge);
            }
            self.entry(&entry, &mut map, depth)?;
        }
        self.sink.end_map(map);
        Ok(())
    }

    fn list_value(
        &mut self,
        message_type: &'s Type,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), Stop> {
        let tables = self.tables;
        let mut list = self.sink.begin_list();
        each(message_type, reader, end, |field, reader| {
            self.sink.element(&mut list);
            self.message(tables.message(field.target()), &mut reader.nested()?, End::Bytes, depth)
        })?;
        self.sink.end_list(list);
        Ok(())
    }

    fn value(
        &mut self,
        message_type: &'s Type,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), Stop> {
        let tables = self.tables;
        let mut is_set = false;
        each(message_type, reader, end, |field, reader| {
            // The last one counts, and messages are merged.
            if is_set {
                return Err(Stop::Merge);
            }
            is_set = true;
            match field.number {
                VALUE_NUMBER => {
                    let value = reader.fixed64()?;
                    let is_finite = f64::from_bits(value).is_finite();
                    check(self.pool, is_finite, message_type, "JSON has no number for NaN and Infinity")?;
                    self.number(field, value);
                    Ok(())
                }
                VALUE_STRING => self.text_or_bytes(field, reader.len_prefixed()?),
                VALUE_STRUCT | VALUE_LIST => {
                    self.message(tables.message(field.target()), &mut reader.nested()?, End::Bytes, depth)
                }
                _ => {
                    let value = number(field.kind, reader)?;
                    self.number(field, value);
                    Ok(())
                }
            }
        })?;
        if !is_set {
            self.sink.null();
        }
        Ok(())
    }

    fn wrapper(&mut self, message_type: &'s Type, reader: &mut Reader<'_>, end: End) -> Result<(), Stop> {
        let [field] = &*message_type.fields else {
            return check(self.pool, false, message_type, "it has not one field");
        };
        if let Kind::String | Kind::Bytes = field.kind {
            let mut value: &[u8] = &[];
            each(message_type, reader, end, |_, reader| {
                value = reader.len_prefixed()?;
                Ok(())
            })?;
            return self.text_or_bytes(field, value);
        }
        let mut value = 0;
        each(message_type, reader, end, |_, reader| {
            value = number(field.kind, reader)?;
            Ok(())
        })?;
        self.number(field, value);
        Ok(())
    }

    /// With the fields of the message that it holds, or that message's own form as a `value`.
    fn any(
        &mut self,
        message_type: &'s Type,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), Stop> {
        let (mut type_url, mut value): (&[u8], _) = (&[], Reader::new(&[]));
        each(message_type, reader, end, |field, reader| {
            match field.number {
                1 => type_url = reader.len_prefixed()?,
                _ => value = reader.nested()?,
            }
            Ok(())
        })?;
        if type_url.is_empty() && value.is_empty() {
            let map = self.sink.begin_map();
            self.sink.end_map(map);
            return Ok(());
        }
        let unknown = || PrintError::UnknownType { type_url: String::from_utf8_lossy(type_url).into_owned() };
        let url = std::str::from_utf8(type_url).map_err(|_| unknown())?;
        let index = named(self.pool, url).ok_or_else(unknown)?;
        if !self.merges_any {
            let start = self.sink.mark();
            match self.any_of(url, index, &mut { value }, depth) {
                Err(Stop::Merge | Stop::Incomplete(_)) => self.sink.rewind(start),
                done => return done,
            }
            // From now on without a try: of fifty in one another, each out of order, the last would be tried 2⁵⁰ times.
            self.merges_any = true;
        }
        let merged = (self.merge)(index as u32, value.rest())?;
        let printed = self.any_of(url, index, &mut Reader::new(&merged), depth);
        printed.map_err(|stop| stop.into_error().into())
    }

    fn any_of(&mut self, url: &str, index: usize, value: &mut Reader<'_>, depth: usize) -> Result<(), Stop> {
        let tables = self.tables;
        let message_type = tables.message(index);
        let mut map = self.sink.begin_map();
        self.sink.name(&mut map, &tables.type_name);
        // It is a `str`.
        let _ = self.sink.text(url.as_bytes());
        if message_type.known.is_none() {
            let Some(depth) = depth.checked_sub(1) else { return Err(too_deep(value)) };
            self.fields(message_type, value, End::Bytes, depth, &mut map)?;
        } else {
            self.sink.name(&mut map, &tables.value_name);
            self.message(message_type, value, End::Bytes, depth)?;
        }
        self.sink.end_map(map);
        Ok(())
    }

    fn ascii(&mut self, text: &[u8]) {
        // What was made of digits and letters is UTF-8.
        let _ = self.sink.text(text);
    }
}

pub(super) const VALUE_NULL: u32 = 1;
pub(super) const VALUE_NUMBER: u32 = 2;
pub(super) const VALUE_STRING: u32 = 3;
pub(super) const VALUE_BOOL: u32 = 4;
pub(super) const VALUE_STRUCT: u32 = 5;
pub(super) const VALUE_LIST: u32 = 6;

/// Calls `found` at each record of a field of the type.
fn each<'s, 'w>(
    message_type: &'s Type,
    reader: &mut Reader<'w>,
    end: End,
    mut found: impl FnMut(&'s Field, &mut Reader<'w>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    while let Some(tag) = next_tag(reader, end)? {
        match message_type.field_of_tag(tag) {
            Some(field) => found(field, reader)?,
            None => drop(skip(tag, reader.offset(), reader, end)?),
        }
    }
    Ok(())
}

fn seconds_and_nanos(message_type: &Type, reader: &mut Reader<'_>, end: End) -> Result<(i64, i32), Stop> {
    let (mut seconds, mut nanos) = (0, 0);
    each(message_type, reader, end, |field, reader| {
        match field.number {
            1 => seconds = reader.varint()? as i64,
            _ => nanos = reader.varint()? as i32,
        }
        Ok(())
    })?;
    Ok((seconds, nanos))
}

fn check(pool: &Pool, is_sound: bool, message_type: &Type, problem: &'static str) -> Result<(), Stop> {
    if is_sound {
        return Ok(());
    }
    let type_name = pool.messages[message_type.index as usize].name.to_string();
    Err(PrintError::WellKnown { type_name, problem }.into())
}

fn too_deep(reader: &Reader<'_>) -> Stop {
    reader.error(crate::wire::WireErrorKind::TooDeep).into()
}
