//! Records one by one: tags, numbers, where a message ends, and what is stepped over.

use super::unordered::Stop;
use crate::schema::table::{Entry, Table};
use crate::wire::{Reader, Tag, WireError, WireErrorKind, WireType};

/// Where the records of a message end.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// With the bytes.
    Bytes,
    /// At the end of the group of this number.
    Group(u32),
}

/// The next record's tag, stepped over, if it is of this field too.
#[inline(always)]
pub(super) fn following(field: &Entry, reader: &mut Reader<'_>) -> Result<Option<u32>, WireError> {
    if reader.is_empty() {
        return Ok(None);
    }
    let before = *reader;
    let tag = reader.tag_bits()?;
    if field.takes(tag) {
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
    table: &'s Table,
    reader: &mut Reader<'w>,
    end: End,
    mut found: impl FnMut(&'s Entry, &mut Reader<'w>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    while let Some(tag) = next_tag(reader, end)? {
        match table.find_by_tag(tag) {
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
