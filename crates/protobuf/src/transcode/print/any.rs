//! `google.protobuf.Any`: prints the message it holds according to its type URL.

use std::sync::LazyLock;

use super::Printer;
use super::records::{End, each};
use super::unordered::PrintInterrupt;
use crate::schema::Key;
use crate::schema::table::Table;
use crate::transcode::error::PrintError;
use crate::transcode::sink::Sink;
use crate::wire::{Reader, WireErrorKind};

/// Member names of an Any in JSON.
static TYPE: LazyLock<Key> = LazyLock::new(|| Key::new("@type"));
static VALUE: LazyLock<Key> = LazyLock::new(|| Key::new("value"));

impl<'s, S: Sink> Printer<'s, S> {
    /// Prints an Any with the fields of its message; a message with its own JSON form is the member `value`.
    pub(super) fn any(
        &mut self,
        table: &'s Table,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), PrintInterrupt> {
        let (mut type_url, mut value): (&[u8], _) = (&[], Reader::new(&[]));
        each(table, reader, end, |field, reader| {
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
        let index = self.pool.message_of_url(url).ok_or_else(unknown)?;
        if !self.normalizes_any {
            let start = self.sink.mark();
            match self.any_of(url, index, &mut { value }, depth) {
                Err(PrintInterrupt::Unordered | PrintInterrupt::Incomplete(_)) => self.sink.rewind(start),
                done => return done,
            }
            // From now on, always merge: with fifty nested Anys, each out of order, the innermost would be tried 2⁵⁰
            // times.
            self.normalizes_any = true;
        }
        let normalized = (self.normalize)(index, value.rest())?;
        let printed = self.any_of(url, index, &mut Reader::new(&normalized), depth);
        printed.map_err(|stop| stop.into_error().into())
    }

    fn any_of(
        &mut self,
        url: &str,
        index: u32,
        value: &mut Reader<'_>,
        depth: usize,
    ) -> Result<(), PrintInterrupt> {
        let table = &self.pool.tables[index as usize];
        let mut map = self.sink.begin_map();
        self.sink.name(&mut map, &TYPE);
        // Cannot fail: it is a `str`.
        let _ = self.sink.text(url.as_bytes());
        if table.known.is_none() {
            let Some(depth) = depth.checked_sub(1) else {
                return Err(value.error(WireErrorKind::TooDeep).into());
            };
            self.fields(table, value, End::Bytes, depth, &mut map)?;
        } else {
            self.sink.name(&mut map, &VALUE);
            self.message(table, value, End::Bytes, depth)?;
        }
        self.sink.end_map(map);
        Ok(())
    }
}
