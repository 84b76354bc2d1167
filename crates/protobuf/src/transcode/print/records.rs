//! Records one by one: tags, numbers, where a message ends, and what is stepped over.

use super::Stop;
use crate::schema::Kind;
use crate::transcode::tables::{Field, Type};
use crate::wire::{Reader, Tag, WireError, WireErrorKind, WireType, unzigzag};

/// Where the records of a message end.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// With the bytes.
    Bytes,
    /// At the end of the group of this number.
    Group(u32),
}

/// A number of any kind as 64 bits: 32-bit signed ones are extended, floats are in the low half.
#[inline(always)]
pub(super) fn number(kind: Kind, reader: &mut Reader<'_>) -> Result<u64, WireError> {
    Ok(match kind {
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => return reader.fixed64(),
        Kind::Float | Kind::Fixed32 => reader.fixed32()?.into(),
        Kind::Sfixed32 => reader.fixed32()? as i32 as u64,
        _ => {
            let value = reader.varint()?;
            match kind {
                Kind::Bool => u64::from(value != 0),
                Kind::Int32 | Kind::Enum => value as i32 as u64,
                Kind::Uint32 => u64::from(value as u32),
                Kind::Sint32 => unzigzag(u64::from(value as u32)) as u64,
                Kind::Sint64 => unzigzag(value) as u64,
                _ => value,
            }
        }
    })
}

/// The next record's tag, stepped over, if it is of this field too.
#[inline]
pub(super) fn following(field: &Field, reader: &mut Reader<'_>) -> Result<Option<u32>, WireError> {
    if reader.is_empty() {
        return Ok(None);
    }
    let before = *reader;
    let tag = reader.tag_bits()?;
    if tag == field.tag || tag == field.other_tag {
        return Ok(Some(tag));
    }
    *reader = before;
    Ok(None)
}

/// The next tag, as it is written; `None` at the end of the message.
pub(super) fn next_tag(reader: &mut Reader<'_>, end: End) -> Result<Option<u32>, WireError> {
    if reader.is_empty() {
        at_end(reader, end)?;
        return Ok(None);
    }
    let start = reader.offset();
    let tag = reader.tag_bits()?;
    if tag & 7 != WireType::EndGroup as u32 {
        return Ok(Some(tag));
    }
    match end {
        End::Group(number) if number == tag >> 3 => Ok(None),
        _ => Err(WireError { offset: start, kind: WireErrorKind::EndGroup }),
    }
}

/// Calls `found` at each record of a field of the type.
pub(super) fn each<'s, 'w>(
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

/// The bytes are used up: a group must not end so.
pub(super) fn at_end(reader: &Reader<'_>, end: End) -> Result<(), WireError> {
    match end {
        End::Bytes => Ok(()),
        End::Group(_) => Err(reader.error(WireErrorKind::GroupOpen)),
    }
}

/// Steps over a record that the type does not have; true if it was the end of the group.
#[inline(never)]
pub(super) fn skip(tag: u32, start: usize, reader: &mut Reader<'_>, end: End) -> Result<bool, WireError> {
    let tag = checked(tag, start)?;
    if tag.wire_type != WireType::EndGroup {
        return reader.skip(tag, GROUPS_MAX).map(|()| false);
    }
    match end {
        End::Group(number) if number == tag.number => Ok(true),
        _ => Err(WireError { offset: start, kind: WireErrorKind::EndGroup }),
    }
}

pub(super) fn checked(tag: u32, offset: usize) -> Result<Tag, WireError> {
    Tag::from_bits(tag).map_err(|kind| WireError { offset, kind })
}

/// Groups in one another that are stepped over.
const GROUPS_MAX: usize = 100;
