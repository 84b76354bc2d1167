//! Converts wire bytes to a sink, record by record, without an intermediate message.
//!
//! This requires that a field's records are adjacent and that each singular field appears once, as all encoders write
//! them. The wire format allows more: scattered records of repeated fields, messages in pieces to be merged, and
//! several values of which the last wins. For such input the printer stops with [`PrintInterrupt::Unordered`], and the
//! caller normalises it first.

mod any;
mod known;
mod list;
mod map;
mod message_set;
mod packed;
mod records;
mod unordered;
mod unset;

use super::error::PrintError;
use super::keys::SeenFields;
use super::options::PrintOptions;
use super::sink::{NotText, Sink};
use crate::schema::Kind;
use crate::schema::number::read_number;
use crate::schema::pool::Pool;
use crate::schema::table::{Entry, FieldShape, Table};
use crate::wire::message_set::ITEM;
use crate::wire::{Reader, WireErrorKind, WireType};
use records::{End, at_end, skip};
pub(crate) use unordered::{Normalize, PrintInterrupt};

pub(crate) struct Printer<'s, S> {
    pool: &'s Pool,
    options: &'s PrintOptions,
    sink: S,
    normalize: Normalize<'s>,
    /// Maximum length of the output, including its previous content.
    out_len_max: usize,
    /// Normalises the content of an Any before printing it, rather than only if needed.
    normalizes_any: bool,
}

impl<'s, S: Sink> Printer<'s, S> {
    pub(crate) fn new(pool: &'s Pool, options: &'s PrintOptions, sink: S, normalize: Normalize<'s>) -> Self {
        let out_len_max = sink.mark().len.saturating_add(options.len_max);
        Printer { pool, options, sink, normalize, out_len_max, normalizes_any: false }
    }

    /// Prints a whole message.
    pub(crate) fn print(&mut self, message_type: u32, wire: &[u8]) -> Result<(), PrintInterrupt> {
        // The message itself does not count.
        let depth = self.options.depth_max.saturating_add(1);
        let table = &self.pool.tables[message_type as usize];
        self.message(table, &mut Reader::new(wire), End::Bytes, depth)
    }

    /// Prints only the present fields of a message of which `wire` is a part.
    pub(crate) fn print_present_fields(
        &mut self,
        message_type: u32,
        wire: &[u8],
    ) -> Result<(), PrintInterrupt> {
        let table = &self.pool.tables[message_type as usize];
        let mut open = self.sink.begin_map();
        let depth = self.options.depth_max;
        self.records(
            table,
            &mut Reader::new(wire),
            End::Bytes,
            depth,
            &mut SeenFields::default(),
            &mut open,
        )?;
        self.sink.end_map(open);
        Ok(())
    }

    /// Prints a message; `depth` is the remaining nesting depth.
    fn message(
        &mut self,
        table: &'s Table,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), PrintInterrupt> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(reader.error(WireErrorKind::TooDeep).into());
        };
        self.check_len()?;
        if table.known.is_some() {
            return self.known(table, reader, end, depth);
        }
        let mut open = self.sink.begin_map();
        self.fields(table, reader, end, depth, &mut open)?;
        self.sink.end_map(open);
        Ok(())
    }

    fn fields(
        &mut self,
        table: &'s Table,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
        open: &mut S::OpenContainer,
    ) -> Result<(), PrintInterrupt> {
        let mut seen = SeenFields::default();
        self.records(table, reader, end, depth, &mut seen, open)?;
        self.unset(table, &seen, open)
    }

    #[inline(always)]
    fn records(
        &mut self,
        table: &'s Table,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
        seen: &mut SeenFields,
        open: &mut S::OpenContainer,
    ) -> Result<(), PrintInterrupt> {
        while !reader.is_empty() {
            let start = reader.offset();
            let tag = reader.tag_bits()?;
            match table.find_by_tag(tag) {
                Some(field) => match field.shape() {
                    FieldShape::Singular => self.singular(field, tag, reader, depth, seen, open)?,
                    FieldShape::Repeated => self.repeated(field, tag, reader, depth, seen, open)?,
                    FieldShape::Map => self.map(field, reader, depth, seen, open)?,
                },
                None if table.message_set && tag == ITEM => {
                    self.message_set_item(table, reader, depth, seen, open)?;
                }
                None => {
                    if skip(tag, start, reader, end)? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(at_end(reader, end)?)
    }

    #[inline]
    fn name(&mut self, field: &Entry, open: &mut S::OpenContainer) {
        let field = self.pool.field(field);
        self.sink.name(open, if self.options.schema_names { &field.name } else { &field.json_name });
    }

    #[inline]
    fn singular(
        &mut self,
        field: &'s Entry,
        tag: u32,
        reader: &mut Reader<'_>,
        depth: usize,
        seen: &mut SeenFields,
        open: &mut S::OpenContainer,
    ) -> Result<(), PrintInterrupt> {
        match field.kind {
            Kind::String | Kind::Bytes => {
                let value = reader.len_prefixed()?;
                if seen.set(field.slot) {
                    return Err(PrintInterrupt::Unordered);
                }
                if value.is_empty() && self.is_omitted(field) {
                    return Ok(());
                }
                self.name(field, open);
                self.text_or_bytes(field, value)
            }
            Kind::Message | Kind::Group => {
                if seen.set(field.slot) {
                    return Err(PrintInterrupt::Unordered);
                }
                self.name(field, open);
                self.nested(field, tag, reader, depth)
            }
            _ => {
                let value = read_number(field.element, reader)?;
                if field.is_closed() && !self.has(field, value) {
                    return Ok(());
                }
                if seen.set(field.slot) {
                    return Err(PrintInterrupt::Unordered);
                }
                if value == 0 && self.is_omitted(field) {
                    return Ok(());
                }
                self.name(field, open);
                self.number(field, value);
                Ok(())
            }
        }
    }

    /// Whether a closed enum has a value of this number.
    #[inline]
    fn has(&self, field: &Entry, value: u64) -> bool {
        self.pool.enums[field.type_index as usize].value(value as i32).is_some()
    }

    /// Whether the field is omitted if its value is zero or empty.
    #[inline]
    fn is_omitted(&self, field: &Entry) -> bool {
        field.is_implicit() && !self.options.defaults
    }

    #[inline]
    fn check_len(&self) -> Result<(), PrintInterrupt> {
        if self.sink.mark().len <= self.out_len_max {
            return Ok(());
        }
        Err(PrintError::TooLong { max: self.options.len_max }.into())
    }

    /// Prints the message in a field.
    #[inline]
    fn nested(
        &mut self,
        field: &'s Entry,
        tag: u32,
        reader: &mut Reader<'_>,
        depth: usize,
    ) -> Result<(), PrintInterrupt> {
        let table = self.pool.table(field);
        if tag & 7 == WireType::StartGroup as u32 {
            return self.message(table, reader, End::Group(tag >> 3), depth);
        }
        self.message(table, &mut reader.nested()?, End::Bytes, depth)
    }

    #[inline]
    fn text_or_bytes(&mut self, field: &Entry, value: &[u8]) -> Result<(), PrintInterrupt> {
        if field.kind == Kind::Bytes {
            self.sink.bytes(value);
            return Ok(());
        }
        self.sink.text(value).map_err(|NotText| not_text(self.pool, field))
    }

    /// Prints `value`, as returned by [`read_number`].
    #[inline]
    fn number(&mut self, field: &Entry, value: u64) {
        match field.kind {
            Kind::Enum => self.enumeration(field, value as i32),
            kind => self.sink.number(kind, value),
        }
    }

    fn enumeration(&mut self, field: &Entry, number: i32) {
        let enumeration = &self.pool.enums[field.type_index as usize];
        match enumeration.value(number) {
            _ if number == 0 && enumeration.is_null() => self.sink.null(),
            Some(value) if !self.options.enum_numbers => {
                // Cannot fail: the name is a `str`.
                let _ = self.sink.text(value.name.as_bytes());
            }
            _ => self.sink.int32(number),
        }
    }
}

#[cold]
fn not_text(pool: &Pool, field: &Entry) -> PrintInterrupt {
    let field = pool.full_name(pool.field(field));
    PrintError::NotText { field }.into()
}
