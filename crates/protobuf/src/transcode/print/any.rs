//! `google.protobuf.Any`: the message that it holds, by its type's name.

use super::records::{End, each};
use super::{Printer, Stop};
use crate::transcode::error::PrintError;
use crate::transcode::sink::Sink;
use crate::transcode::tables::{Type, named};
use crate::wire::{Reader, WireErrorKind};

impl<'s, S: Sink> Printer<'s, S> {
    /// With the fields of the message that it holds, or that message's own form as a `value`.
    pub(super) fn any(
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
            let Some(depth) = depth.checked_sub(1) else {
                return Err(value.error(WireErrorKind::TooDeep).into());
            };
            self.fields(message_type, value, End::Bytes, depth, &mut map)?;
        } else {
            self.sink.name(&mut map, &tables.value_name);
            self.message(message_type, value, End::Bytes, depth)?;
        }
        self.sink.end_map(map);
        Ok(())
    }
}
