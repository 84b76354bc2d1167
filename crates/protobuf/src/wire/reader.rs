//! Reader of wire records.

use super::error::{WireError, WireErrorKind};
use super::tag::{TAG_LEN_MAX, Tag, WireType};
use super::varint::{INVALID_VARINT, join_at, join_word, varint_error};

/// Reads wire records from bytes and tracks its offset.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// The whole input up to the end of the readable part, so that `at` is an offset in the input.
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// Creates a reader of `bytes[start..end]`, with offsets counted from the start of `bytes`.
    ///
    /// # Errors
    ///
    /// Returns [`WireErrorKind::Length`] if the range is not within `bytes`.
    #[inline]
    pub fn within(bytes: &'a [u8], start: usize, end: usize) -> Result<Reader<'a>, WireError> {
        match bytes.get(..end) {
            Some(bytes) if start <= end => Ok(Reader { bytes, at: start }),
            _ => Err(WireError { offset: start, kind: WireErrorKind::Length }),
        }
    }

    /// Returns the current offset, in bytes from the start of the input.
    #[inline]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Returns the offset of the end.
    #[inline]
    pub fn end(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of bytes left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether no bytes are left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Returns the bytes left, without consuming them.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Returns the bytes from an earlier offset to the current one.
    ///
    /// # Panics
    ///
    /// Panics if `start` is beyond [`Reader::offset`].
    #[inline]
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    /// Reads a varint of up to 64 bits.
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

    /// Reads a varint that does not have exactly one byte.
    #[inline(always)]
    fn varint_long(&mut self) -> Result<u64, WireError> {
        let (value, end) = join_at(self.bytes, self.at);
        if end == INVALID_VARINT {
            return Err(varint_error(self.bytes, self.at));
        }
        self.at = end;
        Ok(value)
    }

    /// Reads a varint where lengths are mixed, without a branch that would be mispredicted.
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

    /// Reads a tag.
    #[inline(always)]
    pub fn tag(&mut self) -> Result<Tag, WireError> {
        let start = self.at;
        let bits = self.tag_bits()?;
        Tag::from_bits(bits).map_err(|kind| WireError { offset: start, kind })
    }

    /// Reads the varint of a tag, which may be invalid; see [`Tag::from_bits`].
    #[inline(always)]
    pub(crate) fn tag_bits(&mut self) -> Result<u32, WireError> {
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

    /// Reads four bytes, little-endian.
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

    /// Reads eight bytes, little-endian.
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

    /// Reads a length as a varint, and that many bytes.
    #[inline(always)]
    pub fn len_prefixed(&mut self) -> Result<&'a [u8], WireError> {
        let nested = self.nested()?;
        Ok(nested.rest())
    }

    /// Reads a length as a varint. Returns a reader of that many bytes, which this reader skips.
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

    /// Skips `len` bytes, at most to the end.
    #[inline]
    pub(crate) fn skip_bytes(&mut self, len: usize) {
        self.at = (self.at + len).min(self.bytes.len());
    }

    /// Consumes `expected` if it comes next, and returns whether it did.
    #[inline(always)]
    pub(crate) fn eat(&mut self, expected: &[u8]) -> bool {
        // Usually one byte: compare it without a call.
        let here = self.rest();
        let eaten = match (expected, here) {
            (&[expected], &[byte, ..]) => byte == expected,
            _ => here.starts_with(expected),
        };
        self.at += if eaten { expected.len() } else { 0 };
        eaten
    }

    /// Skips the value of `tag`; groups may be nested `depth` deep.
    ///
    /// # Errors
    ///
    /// Returns read errors, and [`WireErrorKind::EndGroup`] if `tag` ends a group.
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

    /// Skips a group whose start tag has been read, including its end tag. Nested groups are counted rather than
    /// handled recursively, so depth costs no stack.
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

    /// Creates an error at the current offset.
    #[inline(always)]
    pub fn error(&self, kind: WireErrorKind) -> WireError {
        WireError { offset: self.at, kind }
    }
}
