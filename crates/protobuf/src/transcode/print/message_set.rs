//! The old form of message sets: each extension in a group, with its number and its bytes.

use super::records::{End, checked, next_tag};
use super::{Printer, Stop};
use crate::schema::Kind;
use crate::transcode::keys::Seen;
use crate::transcode::sink::Sink;
use crate::transcode::tables::{Shape, Type};
use crate::wire::{Reader, Tag, WireType};

pub(super) const ITEM: Tag = Tag::new(1, WireType::StartGroup);
const ITEM_TYPE_ID: Tag = Tag::new(2, WireType::Varint);
const ITEM_MESSAGE: Tag = Tag::new(3, WireType::Len);

impl<'s, S: Sink> Printer<'s, S> {
    /// A group whose start has been read.
    pub(super) fn message_set_item(
        &mut self,
        message_type: &'s Type,
        reader: &mut Reader<'_>,
        depth: usize,
        seen: &mut Seen,
        open: &mut S::Open,
    ) -> Result<(), Stop> {
        let (mut number, mut message) = (None, None);
        while let Some(tag) = next_tag(reader, End::Group(ITEM.number))? {
            if tag == ITEM_TYPE_ID.bits() && number.is_none() {
                number = Some(reader.varint()? as u32);
            } else if tag == ITEM_MESSAGE.bits() && message.is_none() {
                message = Some(reader.nested()?);
            } else {
                let tag = checked(tag, reader.offset())?;
                reader.skip(tag, depth)?;
            }
        }
        let (Some(number), Some(mut message)) = (number, message) else { return Ok(()) };
        let field = message_type.field_of_number(number);
        let Some(field) = field.filter(|field| field.kind == Kind::Message && field.shape == Shape::Singular)
        else {
            return Ok(());
        };
        if seen.set(field.seen) {
            return Err(Stop::Merge);
        }
        self.name(field, open);
        self.message(self.tables.message(field.target()), &mut message, End::Bytes, depth)
    }
}
