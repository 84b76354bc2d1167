//! The legacy encoding of message sets: a group for each extension, with its number and bytes.

use super::Printer;
use super::records::{End, checked, next_tag};
use super::unordered::PrintInterrupt;
use crate::schema::table::{Op, Table};
use crate::transcode::keys::SeenFields;
use crate::transcode::sink::Sink;
use crate::wire::Reader;
use crate::wire::message_set::{ITEM, MESSAGE, TYPE_ID};

impl<'s, S: Sink> Printer<'s, S> {
    /// Prints an item whose start tag has been read.
    pub(super) fn message_set_item(
        &mut self,
        table: &'s Table,
        reader: &mut Reader<'_>,
        depth: usize,
        seen: &mut SeenFields,
        open: &mut S::OpenContainer,
    ) -> Result<(), PrintInterrupt> {
        let (mut number, mut message) = (None, None);
        while let Some(tag) = next_tag(reader, End::Group(ITEM >> 3))? {
            if tag == TYPE_ID && number.is_none() {
                number = Some(reader.varint()? as u32);
            } else if tag == MESSAGE && message.is_none() {
                message = Some(reader.nested()?);
            } else {
                let tag = checked(tag, reader.offset())?;
                reader.skip(tag, depth)?;
            }
        }
        let (Some(number), Some(mut message)) = (number, message) else { return Ok(()) };
        let Some((_, field)) = table.find(number).filter(|(_, field)| field.op == Op::Message) else {
            return Ok(());
        };
        if seen.set(field.slot) {
            return Err(PrintInterrupt::Unordered);
        }
        self.name(field, open);
        self.message(self.pool.table(field), &mut message, End::Bytes, depth)
    }
}
