//! Well-known types, which have a form of their own in JSON.

use super::map::{Entry, Key, Value};
use super::records::{End, each};
use super::{Printer, Stop};
use crate::schema::{Kind, Pool, WellKnown};
use crate::text::{field_mask, time};
use crate::transcode::error::PrintError;
use crate::transcode::keys::Keys;
use crate::transcode::sink::Sink;
use crate::transcode::tables::Type;
use crate::wire::{Reader, WireErrorKind};

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
            WellKnown::Wrapper => self.wrapper(message_type, reader, end, depth),
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
        each(message_type, reader, end, |field, reader| {
            let mut nested = reader.nested()?;
            let Some(depth) = depth.checked_sub(1) else {
                return Err(reader.error(WireErrorKind::TooDeep).into());
            };
            let entry = Entry::read(tables.message(field.target()), &mut nested)?;
            if !keys.insert(entry.key) {
                return Err(Stop::Merge);
            }
            self.entry(&entry, &mut map, depth)
        })?;
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
        let mut is_set = false;
        each(message_type, reader, end, |field, reader| {
            // The last one counts, and messages are merged.
            if is_set {
                return Err(Stop::Merge);
            }
            is_set = true;
            let value = Value::read(field, reader)?;
            if let (Kind::Double, Value::Number(number)) = (field.kind, value) {
                let is_finite = f64::from_bits(number).is_finite();
                check(self.pool, is_finite, message_type, "JSON has no number for NaN and Infinity")?;
            }
            self.put_value(field, value, depth)
        })?;
        if !is_set {
            self.sink.null();
        }
        Ok(())
    }

    fn wrapper(
        &mut self,
        message_type: &'s Type,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), Stop> {
        let [field] = &*message_type.fields else {
            return check(self.pool, false, message_type, "it has not one field");
        };
        let mut value = Value::Absent;
        each(message_type, reader, end, |field, reader| {
            value = Value::read(field, reader)?;
            Ok(())
        })?;
        self.put_value(field, value, depth)
    }

    fn ascii(&mut self, text: &[u8]) {
        // What was made of digits and letters is UTF-8.
        let _ = self.sink.text(text);
    }
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
