//! Well-known types, which have their own JSON forms.

use super::Printer;
use super::map::{Key, Pair, Value};
use super::records::{End, each};
use super::unordered::PrintInterrupt;
use crate::schema::pool::Pool;
use crate::schema::table::Table;
use crate::schema::{Kind, WellKnown};
use crate::text::{field_mask, time};
use crate::transcode::error::PrintError;
use crate::transcode::keys::Keys;
use crate::transcode::sink::Sink;
use crate::wire::{Reader, WireErrorKind};

impl<'s, S: Sink> Printer<'s, S> {
    pub(super) fn known(
        &mut self,
        table: &'s Table,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), PrintInterrupt> {
        let Some(known) = table.known else { return Ok(()) };
        match known {
            WellKnown::Any => self.any(table, reader, end, depth),
            WellKnown::Timestamp => {
                let (seconds, nanos) = seconds_and_nanos(table, reader, end)?;
                let is_in_range = self.sink.timestamp(seconds, nanos);
                check(self.pool, is_in_range, table, "out of range: expected a year from 1 to 9999")
            }
            WellKnown::Duration => self.duration(table, reader, end),
            WellKnown::FieldMask => self.field_mask(table, reader, end),
            WellKnown::Struct => self.structure(table, reader, end, depth),
            WellKnown::ListValue => self.list_value(table, reader, end, depth),
            WellKnown::Value => self.value(table, reader, end, depth),
            WellKnown::Wrapper => self.wrapper(table, reader, end, depth),
            WellKnown::Empty => Ok(()),
        }
    }

    fn duration(&mut self, table: &Table, reader: &mut Reader<'_>, end: End) -> Result<(), PrintInterrupt> {
        let (seconds, nanos) = seconds_and_nanos(table, reader, end)?;
        let mut text = Vec::new();
        let is_in_range = time::write_duration(seconds, nanos, &mut text);
        check(
            self.pool,
            is_in_range,
            table,
            "out of range: expected at most ±315,576,000,000 s, and both parts of the same sign",
        )?;
        self.ascii(&text);
        Ok(())
    }

    fn field_mask(&mut self, table: &Table, reader: &mut Reader<'_>, end: End) -> Result<(), PrintInterrupt> {
        let (mut text, mut is_first) = (Vec::new(), true);
        each(table, reader, end, |_, reader| {
            let path = std::str::from_utf8(reader.len_prefixed()?).ok();
            if !is_first {
                text.push(b',');
            }
            is_first = false;
            let is_sound = path.is_some_and(|path| field_mask::to_camel(path, &mut text));
            check(self.pool, is_sound, table, "a path cannot be represented in JSON")
        })?;
        if self.sink.text(&text).is_err() {
            return check(self.pool, false, table, "a path is not UTF-8");
        }
        Ok(())
    }

    fn structure(
        &mut self,
        table: &'s Table,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), PrintInterrupt> {
        let mut map = self.sink.begin_map();
        let mut keys = Keys::<Key<'_>>::new();
        each(table, reader, end, |field, reader| {
            let mut nested = reader.nested()?;
            let Some(depth) = depth.checked_sub(1) else {
                return Err(reader.error(WireErrorKind::TooDeep).into());
            };
            let pair = Pair::read(self.pool.table(field), &mut nested)?;
            if !keys.insert(pair.key) {
                return Err(PrintInterrupt::Unordered);
            }
            self.pair(&pair, &mut map, depth)
        })?;
        self.sink.end_map(map);
        Ok(())
    }

    fn list_value(
        &mut self,
        table: &'s Table,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), PrintInterrupt> {
        let mut list = self.sink.begin_list();
        each(table, reader, end, |field, reader| {
            self.sink.element(&mut list);
            self.message(self.pool.table(field), &mut reader.nested()?, End::Bytes, depth)
        })?;
        self.sink.end_list(list);
        Ok(())
    }

    fn value(
        &mut self,
        table: &'s Table,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), PrintInterrupt> {
        let mut is_set = false;
        each(table, reader, end, |field, reader| {
            // The last value wins, and messages are merged.
            if is_set {
                return Err(PrintInterrupt::Unordered);
            }
            is_set = true;
            let value = Value::read(field, reader)?;
            if let (Kind::Double, Value::Number(number)) = (field.kind, value) {
                let is_finite = f64::from_bits(number).is_finite();
                check(self.pool, is_finite, table, "JSON cannot represent NaN and Infinity")?;
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
        table: &'s Table,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), PrintInterrupt> {
        let [field] = table.entries() else {
            return check(self.pool, false, table, "expected exactly one field");
        };
        let mut value = Value::Absent;
        each(table, reader, end, |field, reader| {
            value = Value::read(field, reader)?;
            Ok(())
        })?;
        self.put_value(field, value, depth)
    }

    fn ascii(&mut self, text: &[u8]) {
        // Cannot fail: the text consists of digits and letters.
        let _ = self.sink.text(text);
    }
}

fn seconds_and_nanos(table: &Table, reader: &mut Reader<'_>, end: End) -> Result<(i64, i32), PrintInterrupt> {
    let (mut seconds, mut nanos) = (0, 0);
    each(table, reader, end, |field, reader| {
        match field.number {
            1 => seconds = reader.varint()? as i64,
            _ => nanos = reader.varint()? as i32,
        }
        Ok(())
    })?;
    Ok((seconds, nanos))
}

fn check(pool: &Pool, is_sound: bool, table: &Table, problem: &'static str) -> Result<(), PrintInterrupt> {
    if is_sound {
        return Ok(());
    }
    let type_name = pool.messages[table.message as usize].name.to_string();
    Err(PrintError::WellKnown { type_name, problem }.into())
}
