//! The [wire format](https://protobuf.dev/programming-guides/encoding/): varints, tags and the lengths of records.
//!
//! A message is a row of records: a [`Tag`], which is a varint of `(number << 3) | wire type`, and what the wire type
//! says. [`Reader`] walks over them, knows the offset at which it stands, and says in a [`WireError`] what was wrong
//! and where.
//!
//! ```
//! use thalweg_protobuf::wire::{Reader, Tag, WireType};
//!
//! let mut reader = Reader::new(b"\x08\x96\x01\x12\x02hi");
//! assert_eq!(reader.tag()?, Tag::new(1, WireType::Varint));
//! assert_eq!(reader.varint()?, 150);
//! assert_eq!(reader.tag()?, Tag::new(2, WireType::Len));
//! assert_eq!(reader.len_prefixed()?, b"hi");
//! assert!(reader.is_empty());
//! # Ok::<(), thalweg_protobuf::wire::WireError>(())
//! ```

mod varints;

use std::fmt;

use thiserror::Error;

/// Field numbers go from 1 to this.
pub const NUMBER_MAX: u32 = (1 << 29) - 1;

/// A varint of 64 bits has at most so many bytes.
pub const VARINT_LEN_MAX: usize = 10;

/// A tag has at most so many bytes: it holds 32 bits.
pub const TAG_LEN_MAX: usize = 5;

/// What follows a tag: the low three bits of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum WireType {
    /// A varint: integers, booleans, enums.
    Varint = 0,
    /// Eight bytes, little-endian: `fixed64`, `sfixed64`, `double`.
    Fixed64 = 1,
    /// A varint with the length in bytes, and as many bytes: strings, bytes, messages, packed numbers.
    Len = 2,
    /// A group begins; its records follow, up to the end of the group with the same number.
    StartGroup = 3,
    /// A group ends.
    EndGroup = 4,
    /// Four bytes, little-endian: `fixed32`, `sfixed32`, `float`.
    Fixed32 = 5,
}

impl WireType {
    /// The wire type in the low three bits of a tag; 6 and 7 are none.
    pub fn from_bits(bits: u32) -> Option<WireType> {
        match bits & 7 {
            0 => Some(WireType::Varint),
            1 => Some(WireType::Fixed64),
            2 => Some(WireType::Len),
            3 => Some(WireType::StartGroup),
            4 => Some(WireType::EndGroup),
            5 => Some(WireType::Fixed32),
            _ => None,
        }
    }
}

impl fmt::Display for WireType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            WireType::Varint => "varint",
            WireType::Fixed64 => "64-bit",
            WireType::Len => "length-delimited",
            WireType::StartGroup => "start of group",
            WireType::EndGroup => "end of group",
            WireType::Fixed32 => "32-bit",
        })
    }
}

/// The number of a field and the form that its value has on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag {
    /// From 1 to [`NUMBER_MAX`].
    pub number: u32,
    /// What follows.
    pub wire_type: WireType,
}

impl Tag {
    /// A tag; `number` is to be from 1 to [`NUMBER_MAX`].
    pub const fn new(number: u32, wire_type: WireType) -> Tag {
        Tag { number, wire_type }
    }

    /// The value of the varint that stands for it: `(number << 3) | wire type`.
    pub const fn bits(self) -> u32 {
        (self.number << 3) | self.wire_type as u32
    }

    /// The tag that a varint of this value stands for.
    pub fn from_bits(bits: u32) -> Result<Tag, WireErrorKind> {
        let number = bits >> 3;
        if number == 0 {
            return Err(WireErrorKind::FieldNumber);
        }
        match WireType::from_bits(bits) {
            Some(wire_type) => Ok(Tag { number, wire_type }),
            None => Err(WireErrorKind::WireType),
        }
    }
}

/// Bytes that are no Protobuf, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("at byte {offset}: {kind}")]
pub struct WireError {
    /// Where the tag, varint or value begins that could not be read; counted from the start of the input.
    pub offset: usize,
    /// What is wrong with it.
    pub kind: WireErrorKind,
}

/// What was wrong with the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum WireErrorKind {
    /// The input, or the message around, ends inside a tag, a varint or a value.
    #[error("the input ends inside a value")]
    Truncated,
    /// More than ten bytes, or more than 64 bits.
    #[error("a varint is longer than 64 bits")]
    VarintTooLong,
    /// A tag of more than five bytes or 32 bits.
    #[error("a tag is longer than 32 bits")]
    TagTooLong,
    /// Field number 0.
    #[error("field number 0 is not allowed")]
    FieldNumber,
    /// Wire types 6 and 7.
    #[error("wire types 6 and 7 do not exist")]
    WireType,
    /// A length that goes beyond the end of the input, or of the message around.
    #[error("a length goes beyond the end of its message")]
    Length,
    /// The end of a group that was not open, or of another one than the innermost.
    #[error("a group ends that is not the one that is open")]
    EndGroup,
    /// The input ended inside a group.
    #[error("a group does not end")]
    GroupOpen,
    /// Groups or messages in each other, deeper than allowed.
    #[error("messages lie in each other deeper than allowed")]
    TooDeep,
}

/// Reads records from bytes, and knows at which offset it is.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// From the start of the whole input to the end of what may be read: so `at` is an offset in the input.
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Stands at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// Reads `bytes[start..end]`, with offsets counted from the start of `bytes`.
    ///
    /// # Errors
    ///
    /// [`WireErrorKind::Length`] if that is no range of `bytes`.
    #[inline]
    pub fn within(bytes: &'a [u8], start: usize, end: usize) -> Result<Reader<'a>, WireError> {
        match bytes.get(..end) {
            Some(bytes) if start <= end => Ok(Reader { bytes, at: start }),
            _ => Err(WireError { offset: start, kind: WireErrorKind::Length }),
        }
    }

    /// How far it has come, in bytes from the start of the input.
    #[inline]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The offset at which it ends.
    #[inline]
    pub fn end(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that are left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether nothing is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The bytes that are left, without reading them.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// What lies between an earlier offset and this one.
    ///
    /// # Panics
    ///
    /// If `start` is beyond [`Reader::offset`].
    #[inline]
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    /// A varint of up to 64 bits.
    #[inline(always)]
    pub fn varint(&mut self) -> Result<u64, WireError> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            _ => self.varint_long(),
        }
    }

    /// A varint of more than one byte, or of none.
    #[inline(always)]
    fn varint_long(&mut self) -> Result<u64, WireError> {
        let (value, end) = join_at(self.bytes, self.at);
        if end == NO_VARINT {
            return Err(no_varint(self.bytes, self.at));
        }
        self.at = end;
        Ok(value)
    }

    /// A varint of any length, where lengths are mixed: without a branch that would be guessed wrong.
    #[inline(always)]
    pub(crate) fn varint_mixed(&mut self) -> Result<u64, WireError> {
        if let Some(chunk) = self.rest().first_chunk()
            && let Some((value, len)) = join_word(u64::from_le_bytes(*chunk))
        {
            self.at += len;
            return Ok(value);
        }
        self.varint()
    }

    /// A tag.
    #[inline(always)]
    pub fn tag(&mut self) -> Result<Tag, WireError> {
        let start = self.at;
        let bits = self.tag_bits()?;
        Tag::from_bits(bits).map_err(|kind| WireError { offset: start, kind })
    }

    /// The varint of a tag, which need not be a valid one: see [`Tag::from_bits`].
    #[inline(always)]
    pub fn tag_bits(&mut self) -> Result<u32, WireError> {
        match *self.rest() {
            [byte, ..] if byte < 0x80 => {
                self.at += 1;
                Ok(u32::from(byte))
            }
            [low, high, ..] if high < 0x80 => {
                self.at += 2;
                Ok(u32::from(low & 0x7f) | u32::from(high) << 7)
            }
            _ => {
                let start = self.at;
                let value = self.varint_long()?;
                if self.at - start > TAG_LEN_MAX || value > u64::from(u32::MAX) {
                    self.at = start;
                    return Err(self.error(WireErrorKind::TagTooLong));
                }
                Ok(value as u32)
            }
        }
    }

    /// Four bytes, little-endian.
    #[inline(always)]
    pub fn fixed32(&mut self) -> Result<u32, WireError> {
        match self.rest().first_chunk() {
            Some(chunk) => {
                self.at += 4;
                Ok(u32::from_le_bytes(*chunk))
            }
            None => Err(self.error(WireErrorKind::Truncated)),
        }
    }

    /// Eight bytes, little-endian.
    #[inline(always)]
    pub fn fixed64(&mut self) -> Result<u64, WireError> {
        match self.rest().first_chunk() {
            Some(chunk) => {
                self.at += 8;
                Ok(u64::from_le_bytes(*chunk))
            }
            None => Err(self.error(WireErrorKind::Truncated)),
        }
    }

    /// A varint with a length, and as many bytes.
    #[inline(always)]
    pub fn len_prefixed(&mut self) -> Result<&'a [u8], WireError> {
        let nested = self.nested()?;
        Ok(nested.rest())
    }

    /// A varint with a length, and a reader of as many bytes; this one then stands behind them.
    #[inline(always)]
    pub fn nested(&mut self) -> Result<Reader<'a>, WireError> {
        let start = self.at;
        let len = self.varint()?;
        if len > self.remaining() as u64 {
            self.at = start;
            return Err(self.error(WireErrorKind::Length));
        }
        let body = self.at;
        self.at += len as usize;
        Ok(Reader { bytes: &self.bytes[..self.at], at: body })
    }

    /// Goes over `len` bytes, or to the end.
    #[inline]
    pub fn skip_bytes(&mut self, len: usize) {
        self.at = (self.at + len).min(self.bytes.len());
    }

    /// Reads `expected` if it comes next.
    #[inline(always)]
    pub(crate) fn eat(&mut self, expected: &[u8]) -> bool {
        // One byte, mostly: no call for comparing.
        let here = self.rest();
        let eaten = match (expected, here) {
            (&[expected], &[byte, ..]) => byte == expected,
            _ => here.starts_with(expected),
        };
        self.at += if eaten { expected.len() } else { 0 };
        eaten
    }

    /// Goes over what follows `tag`; `depth` groups may lie in each other.
    ///
    /// # Errors
    ///
    /// Besides what reading can say, [`WireErrorKind::EndGroup`] if `tag` ends a group.
    pub fn skip(&mut self, tag: Tag, depth: usize) -> Result<(), WireError> {
        match tag.wire_type {
            WireType::Varint => self.varint().map(drop),
            WireType::Fixed64 => self.fixed64().map(drop),
            WireType::Len => self.len_prefixed().map(drop),
            WireType::Fixed32 => self.fixed32().map(drop),
            WireType::StartGroup => self.skip_group(tag.number, depth),
            WireType::EndGroup => Err(self.error(WireErrorKind::EndGroup)),
        }
    }

    /// Goes over the records of a group whose start has been read, and over its end. The groups in it are counted,
    /// not called: their depth costs no stack.
    fn skip_group(&mut self, number: u32, depth: usize) -> Result<(), WireError> {
        let start = self.at;
        let mut open = vec![number];
        while let Some(&innermost) = open.last() {
            if open.len() > depth {
                return Err(self.error(WireErrorKind::TooDeep));
            }
            if self.is_empty() {
                return Err(WireError { offset: start, kind: WireErrorKind::GroupOpen });
            }
            let at = self.at;
            let tag = self.tag()?;
            match tag.wire_type {
                WireType::StartGroup => open.push(tag.number),
                WireType::EndGroup if tag.number == innermost => drop(open.pop()),
                WireType::EndGroup => return Err(WireError { offset: at, kind: WireErrorKind::EndGroup }),
                _ => self.skip(tag, 0)?,
            }
        }
        Ok(())
    }

    /// An error at this offset.
    #[inline(always)]
    pub fn error(&self, kind: WireErrorKind) -> WireError {
        WireError { offset: self.at, kind }
    }
}

/// Instead of where a varint ends.
const NO_VARINT: usize = usize::MAX;

/// The varint at `at`, and where it ends; or [`NO_VARINT`]. Takes and gives words, so that a reader need not be in memory.
#[inline(never)]
fn join_at(bytes: &[u8], at: usize) -> (u64, usize) {
    let rest = &bytes[at..];
    let word = match (rest.first_chunk(), bytes.last_chunk()) {
        (Some(chunk), _) => u64::from_le_bytes(*chunk),
        // Near the end: the last word, without what has been read of it.
        (None, Some(chunk)) => {
            u64::from_le_bytes(*chunk).checked_shr(64 - 8 * rest.len() as u32).unwrap_or(0)
        }
        (None, None) => u64::MAX,
    };
    match join_word(word) {
        Some((value, len)) if len <= rest.len() => (value, at + len),
        // Nine or ten bytes: a negative number, mostly.
        _ => join(rest).map_or((0, NO_VARINT), |(value, len)| (value, at + len)),
    }
}

/// Why there is no varint.
#[cold]
fn no_varint(bytes: &[u8], at: usize) -> WireError {
    let kind = join(&bytes[at..]).err().unwrap_or(WireErrorKind::Truncated);
    WireError { offset: at, kind }
}

/// The varint in the low bytes of `word`, and its length; none if it goes on beyond.
#[inline(always)]
fn join_word(word: u64) -> Option<(u64, usize)> {
    // The high bit of each byte that is a last one.
    let stops = !word & 0x8080_8080_8080_8080;
    if stops == 0 {
        return None;
    }
    let len = (stops.trailing_zeros() as usize + 1) / 8;
    // What is up to the lowest of them, and of that seven bits a byte: moved together two, four and eight bytes at a time.
    let bits = word & (stops ^ (stops - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
    let bits = bits & 0x007f_007f_007f_007f | (bits & 0x7f00_7f00_7f00_7f00) >> 1;
    let bits = bits & 0x0000_3fff_0000_3fff | (bits & 0x3fff_0000_3fff_0000) >> 2;
    Some((bits & 0x0fff_ffff | (bits & 0x0fff_ffff_0000_0000) >> 4, len))
}

/// The varint of one byte or two at the start of `bytes`, and its length. Without a branch on that, which would be guessed wrong
/// where lengths are mixed.
#[inline(always)]
pub(crate) fn join_short([low, high]: [u8; 2]) -> (u64, usize) {
    let more = low >> 7;
    let high = high & 0u8.wrapping_sub(more);
    (u64::from(low & 0x7f) | u64::from(high) << 7, 1 + usize::from(more))
}

/// The varint at the start of `bytes`, and its length.
#[cold]
fn join(bytes: &[u8]) -> Result<(u64, usize), WireErrorKind> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate().take(VARINT_LEN_MAX) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            // Nine bytes hold 63 bits: the tenth has room for one.
            return if index == VARINT_LEN_MAX - 1 && byte > 1 {
                Err(WireErrorKind::VarintTooLong)
            } else {
                Ok((value, index + 1))
            };
        }
    }
    Err(if bytes.len() < VARINT_LEN_MAX { WireErrorKind::Truncated } else { WireErrorKind::VarintTooLong })
}

/// How many bytes the varint of `value` has: from 1 to 10.
#[inline(always)]
pub const fn varint_len(value: u64) -> usize {
    // Seven bits a byte: 9/64 is a little less than 1/7, and right for all of 1..=64 bits.
    ((64 - (value | 1).leading_zeros() as usize) * 9 + 64) / 64
}

/// Appends `value` as a varint.
#[inline(always)]
pub fn put_varint(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8);
    } else {
        put_varint_long(out, value);
    }
}

#[inline]
fn put_varint_long(out: &mut Vec<u8>, mut value: u64) {
    let (mut bytes, mut len) = ([0; VARINT_LEN_MAX], 0);
    while value >= 0x80 && len < VARINT_LEN_MAX - 1 {
        bytes[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    bytes[len] = value as u8;
    // A copy of known length asks for room only once.
    let end = out.len() + len + 1;
    out.extend_from_slice(&bytes);
    out.truncate(end);
}

/// Appends a tag.
#[inline]
pub fn put_tag(out: &mut Vec<u8>, tag: Tag) {
    put_varint(out, u64::from(tag.bits()));
}

/// `sint32` and `sint64` as they are on the wire: 0, -1, 1, -2 … become 0, 1, 2, 3 …
#[inline(always)]
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline(always)]
pub const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(
        bytes: &[u8],
        read: impl Fn(&mut Reader<'_>) -> Result<(), WireError>,
    ) -> (usize, WireErrorKind) {
        let error = read(&mut Reader::new(bytes)).expect_err("bytes that are no Protobuf");
        (error.offset, error.kind)
    }

    #[test]
    fn varints_come_back() {
        let edges = (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, (1 << bit) + 1]);
        for value in edges.chain([u64::MAX, u64::MAX - 1]) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(bytes.len(), varint_len(value), "{value:#x}");
            for behind in [0, 1, 20] {
                let mut input = bytes.clone();
                input.resize(bytes.len() + behind, 0xff);
                let mut reader = Reader::new(&input);
                assert_eq!(reader.varint(), Ok(value));
                assert_eq!(reader.offset(), bytes.len());
            }
            for len in 0..bytes.len() {
                let truncated = fails(&bytes[..len], |reader| reader.varint().map(drop));
                assert_eq!(truncated, (0, WireErrorKind::Truncated));
            }
        }
    }

    #[test]
    fn a_varint_has_64_bits_at_most() {
        let varint = |bytes: &[u8]| fails(bytes, |reader| reader.varint().map(drop));
        let mut bytes = [0xff; 11];
        assert_eq!(varint(&bytes), (0, WireErrorKind::VarintTooLong));
        bytes[9] = 2;
        assert_eq!(varint(&bytes), (0, WireErrorKind::VarintTooLong));
        bytes[9] = 1;
        assert_eq!(Reader::new(&bytes).varint(), Ok(u64::MAX));
    }

    #[test]
    fn overlong_varints_are_accepted() {
        assert_eq!(Reader::new(&[0x81, 0x80, 0x80, 0x00]).varint(), Ok(1));
    }

    #[test]
    fn zigzag_alternates() {
        let values = [0, -1, 1, -2, 2, i64::MAX, i64::MIN];
        let expected = [0, 1, 2, 3, 4, u64::MAX - 1, u64::MAX];
        assert_eq!(values.map(zigzag), expected);
        assert_eq!(expected.map(unzigzag), values);
    }

    #[test]
    fn tags_are_checked() {
        let tag = |bytes: &[u8]| Reader::new(bytes).tag().map_err(|error| error.kind);
        assert_eq!(tag(&[0x08]), Ok(Tag::new(1, WireType::Varint)));
        assert_eq!(tag(&[0x82, 0x01]), Ok(Tag::new(16, WireType::Len)));
        assert_eq!(tag(&[0xfd, 0xff, 0xff, 0xff, 0x0f]), Ok(Tag::new(NUMBER_MAX, WireType::Fixed32)));
        assert_eq!(tag(&[0x88, 0x80, 0x80, 0x80, 0x00]), Ok(Tag::new(1, WireType::Varint)));
        assert_eq!(tag(&[0x88, 0x80, 0x80, 0x80, 0x80, 0x00]), Err(WireErrorKind::TagTooLong));
        assert_eq!(tag(&[0xfd, 0xff, 0xff, 0xff, 0x1f]), Err(WireErrorKind::TagTooLong));
        assert_eq!(tag(&[0x02]), Err(WireErrorKind::FieldNumber));
        assert_eq!(tag(&[0x0e]), Err(WireErrorKind::WireType));
        assert_eq!(tag(&[0x0f]), Err(WireErrorKind::WireType));
        assert_eq!(tag(&[]), Err(WireErrorKind::Truncated));
        assert_eq!(tag(&[0x80]), Err(WireErrorKind::Truncated));
    }

    #[test]
    fn lengths_keep_within_the_message_around() {
        let mut outer = Reader::new(&[3, 2, b'a', b'b', b'c']);
        let mut inner = outer.nested().expect("three bytes");
        assert_eq!((inner.offset(), inner.end(), outer.offset()), (1, 4, 4));
        assert_eq!(inner.len_prefixed(), Ok(&b"ab"[..]));
        assert!(inner.is_empty());
        let mut inner = Reader::within(&[3, 4, b'a', b'b', b'c', b'd'], 1, 4).expect("a range");
        assert_eq!(inner.len_prefixed(), Err(WireError { offset: 1, kind: WireErrorKind::Length }));
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(fails(&huge, |reader| reader.nested().map(drop)), (0, WireErrorKind::Length));
    }

    #[test]
    fn groups_are_skipped_whole() {
        let skip = |bytes: &[u8], depth| {
            let mut reader = Reader::new(bytes);
            let tag = reader.tag()?;
            reader.skip(tag, depth)?;
            Ok::<_, WireError>(reader.offset())
        };
        // Group 1 { 2: 5, group 3 { } } and a byte behind it.
        assert_eq!(skip(&[0x0b, 0x10, 0x05, 0x1b, 0x1c, 0x0c, 0x00], 2), Ok(6));
        let fails = |bytes: &[u8], depth| skip(bytes, depth).map_err(|error| (error.offset, error.kind));
        assert_eq!(fails(&[0x0b, 0x1b, 0x1c, 0x0c], 1), Err((2, WireErrorKind::TooDeep)));
        assert_eq!(fails(&[0x0b, 0x14], 2), Err((1, WireErrorKind::EndGroup)));
        assert_eq!(fails(&[0x0b, 0x10, 0x05], 2), Err((1, WireErrorKind::GroupOpen)));
        assert_eq!(fails(&[0x0c], 2), Err((1, WireErrorKind::EndGroup)));
    }
}
