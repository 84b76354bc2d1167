//! Reads and skips wire records, and detects the end of a message.

use super::unordered::PrintInterrupt;
use crate::schema::table::{Entry, Table};
use crate::wire::{Reader, Tag, WireError, WireErrorKind, WireType};

/// The end of a message's records.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// The end of the bytes.
    Bytes,
    /// The end tag of the group with this number.
    Group(u32),
}

/// Consumes and returns the next tag, if it is of this field too.
#[inline(always)]
pub(super) fn following(field: &Entry, reader: &mut Reader<'_>) -> Result<Option<u32>, WireError> {
    if reader.is_empty() {
        return Ok(None);
    }
    let before = *reader;
    let tag = reader.tag_bits()?;
    if field.matches_tag(tag) {
        return Ok(Some(tag));
    }
    *reader = before;
    Ok(None)
}

/// Returns the next raw tag, or `None` at the end of the message.
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

/// Calls `found` for each wire record of a known field.
pub(super) fn each<'s, 'w>(
    table: &'s Table,
    reader: &mut Reader<'w>,
    end: End,
    mut found: impl FnMut(&'s Entry, &mut Reader<'w>) -> Result<(), PrintInterrupt>,
) -> Result<(), PrintInterrupt> {
    while let Some(tag) = next_tag(reader, end)? {
        match table.find_by_tag(tag) {
            Some(field) => found(field, reader)?,
            None => drop(skip(tag, reader.offset(), reader, end)?),
        }
    }
    Ok(())
}

/// Checks the end of the bytes, which must not be inside a group.
pub(super) fn at_end(reader: &Reader<'_>, end: End) -> Result<(), WireError> {
    match end {
        End::Bytes => Ok(()),
        End::Group(_) => Err(reader.error(WireErrorKind::GroupOpen)),
    }
}

/// Skips an unknown record. Returns true if it ended the group.
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

/// Maximum nesting depth of skipped groups.
const GROUPS_MAX: usize = 100;
