//! MessagePack as an input format.

use std::borrow::Cow;

use rmp::Marker;
use rmp::decode::{self, Bytes};

use crate::printable::excerpt;
use crate::schema::Key;
use crate::text::{number, time};
use crate::transcode::parse_error::LocatedError;
use crate::transcode::{Source, ValueKind};

/// Extension type of timestamps.
pub(super) const TIMESTAMP: i8 = -1;

/// Reads MessagePack values from bytes.
#[derive(Clone, Debug)]
pub(super) struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
}

/// An open map or list. Its claimed length is only counted down; nothing is allocated for it.
pub(super) struct OpenContainer {
    left: u32,
}

/// A number as encoded.
enum Number {
    Whole(i128),
    Float(f32),
    Double(f64),
}

impl<'t> Reader<'t> {
    pub(super) fn new(bytes: &'t [u8]) -> Reader<'t> {
        Reader { bytes, at: 0 }
    }

    /// Checks that nothing follows the value.
    pub(super) fn end(&self) -> Result<(), LocatedError> {
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err(self.error_here("trailing bytes after the message"))
        }
    }

    #[cold]
    fn error_here(&self, problem: &str) -> LocatedError {
        LocatedError::new(self.at, problem)
    }

    #[cold]
    fn mismatch(&mut self, expected: &str) -> LocatedError {
        match self.peek() {
            Ok(found) => LocatedError::new(self.at, format!("expected {expected}, found {}", found.name())),
            Err(error) => error,
        }
    }

    fn rest(&self) -> &'t [u8] {
        &self.bytes[self.at..]
    }

    /// Calls `read`. An error states what was expected.
    fn read<T, E>(
        &mut self,
        expected: &str,
        read: impl FnOnce(&mut Bytes<'t>) -> Result<T, E>,
    ) -> Result<T, LocatedError> {
        let mut bytes = Bytes::new(self.rest());
        match read(&mut bytes) {
            Ok(value) => {
                self.at += bytes.position() as usize;
                Ok(value)
            }
            Err(_) => Err(self.mismatch(expected)),
        }
    }

    /// Takes the next `len` bytes.
    fn take(&mut self, len: usize) -> Result<&'t [u8], LocatedError> {
        let Some(bytes) = self.rest().get(..len) else {
            return Err(self.error_here("unexpected end inside a value"));
        };
        self.at += len;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<Number, LocatedError> {
        let at = self.at;
        let marker = self.read("a number", decode::read_marker)?;
        Ok(match marker {
            Marker::FixPos(value) => Number::Whole(value.into()),
            Marker::FixNeg(value) => Number::Whole(value.into()),
            Marker::U8 => Number::Whole(u8::from_be_bytes(self.array()?).into()),
            Marker::U16 => Number::Whole(u16::from_be_bytes(self.array()?).into()),
            Marker::U32 => Number::Whole(u32::from_be_bytes(self.array()?).into()),
            Marker::U64 => Number::Whole(u64::from_be_bytes(self.array()?).into()),
            Marker::I8 => Number::Whole(i8::from_be_bytes(self.array()?).into()),
            Marker::I16 => Number::Whole(i16::from_be_bytes(self.array()?).into()),
            Marker::I32 => Number::Whole(i32::from_be_bytes(self.array()?).into()),
            Marker::I64 => Number::Whole(i64::from_be_bytes(self.array()?).into()),
            Marker::F32 => Number::Float(f32::from_be_bytes(self.array()?)),
            Marker::F64 => Number::Double(f64::from_be_bytes(self.array()?)),
            _ => {
                self.at = at;
                return Err(self.mismatch("a number"));
            }
        })
    }

    fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], LocatedError> {
        match self.take(LEN)?.first_chunk() {
            Some(array) => Ok(*array),
            None => Err(self.error_here("unexpected end inside a value")),
        }
    }

    /// Reads an extension; only timestamps are known.
    fn extension(&mut self) -> Result<(i8, &'t [u8]), LocatedError> {
        let meta = self.read("a time", decode::read_ext_meta)?;
        Ok((meta.typeid, self.take(meta.size as usize)?))
    }
}

impl<'t> Source<'t> for Reader<'t> {
    type OpenContainer = OpenContainer;

    fn offset(&self) -> usize {
        self.at
    }

    fn peek(&mut self) -> Result<ValueKind, LocatedError> {
        let Some(&byte) = self.bytes.get(self.at) else {
            return Err(self.error_here("expected a value, found the end of the bytes"));
        };
        Ok(match Marker::from_u8(byte) {
            Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => ValueKind::Map,
            Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => ValueKind::List,
            Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => ValueKind::Text,
            Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => ValueKind::Bytes,
            Marker::Null => ValueKind::Null,
            Marker::True | Marker::False => ValueKind::Bool,
            Marker::FixExt1
            | Marker::FixExt2
            | Marker::FixExt4
            | Marker::FixExt8
            | Marker::FixExt16
            | Marker::Ext8
            | Marker::Ext16
            | Marker::Ext32 => ValueKind::Time,
            Marker::Reserved => return Err(self.error_here("invalid byte 0xc1")),
            _ => ValueKind::Number,
        })
    }

    fn begin_map(&mut self) -> Result<OpenContainer, LocatedError> {
        Ok(OpenContainer { left: self.read("an object", decode::read_map_len)? })
    }

    fn next_key(&mut self, open: &mut OpenContainer) -> Result<bool, LocatedError> {
        let has_next = open.left > 0;
        open.left -= u32::from(has_next);
        Ok(has_next)
    }

    #[inline]
    fn take_name(&mut self, name: &Key) -> bool {
        let text = name.text().as_bytes();
        let is_next = match self.rest() {
            [head, rest @ ..] => {
                text.len() < 32 && *head == 0xa0 | text.len() as u8 && rest.starts_with(text)
            }
            [] => false,
        };
        if is_next {
            self.at += 1 + text.len();
        }
        is_next
    }

    fn key(&mut self) -> Result<Cow<'t, str>, LocatedError> {
        self.text()
    }

    fn integer_key(&mut self) -> Result<i128, LocatedError> {
        self.integer()
    }

    fn bool_key(&mut self) -> Result<bool, LocatedError> {
        self.bool()
    }

    fn begin_list(&mut self) -> Result<OpenContainer, LocatedError> {
        Ok(OpenContainer { left: self.read("an array", decode::read_array_len)? })
    }

    fn next_element(&mut self, open: &mut OpenContainer) -> Result<bool, LocatedError> {
        self.next_key(open)
    }

    fn null(&mut self) -> Result<(), LocatedError> {
        self.read("null", decode::read_nil)
    }

    fn bool(&mut self) -> Result<bool, LocatedError> {
        self.read("true or false", decode::read_bool)
    }

    /// Also accepts whole floating-point numbers: some languages have no others.
    fn integer(&mut self) -> Result<i128, LocatedError> {
        let at = self.at;
        if self.peek()? == ValueKind::Text {
            let text = self.text()?;
            let problem = || LocatedError::new(at, format!("`{}` is not a whole number", excerpt(&text)));
            return number::integer_in_string(&text).map_err(|_| problem());
        }
        let value = match self.number()? {
            Number::Whole(value) => return Ok(value),
            Number::Float(value) => value.into(),
            Number::Double(value) => value,
        };
        // No integer type extends beyond 2^64.
        if value.fract() == 0.0 && value.abs() < 2_f64.powi(64) {
            return Ok(value as i128);
        }
        Err(LocatedError::new(at, format!("{value} is not a whole number")))
    }

    fn float(&mut self) -> Result<f32, LocatedError> {
        let at = self.at;
        let value = match self.number()? {
            Number::Whole(value) => value as f32,
            Number::Float(value) => value,
            Number::Double(value) if value.is_finite() && !(value as f32).is_finite() => {
                return Err(LocatedError::new(at, format!("{value} is out of range")));
            }
            Number::Double(value) => value as f32,
        };
        Ok(value)
    }

    fn double(&mut self) -> Result<f64, LocatedError> {
        Ok(match self.number()? {
            Number::Whole(value) => value as f64,
            Number::Float(value) => value.into(),
            Number::Double(value) => value,
        })
    }

    fn text(&mut self) -> Result<Cow<'t, str>, LocatedError> {
        let len = self.read("a string", decode::read_str_len)?;
        let bytes = self.take(len as usize)?;
        let text = std::str::from_utf8(bytes).map_err(|_| self.error_here("a string is not UTF-8"))?;
        Ok(Cow::Borrowed(text))
    }

    fn bytes(&mut self, wire: &mut Vec<u8>) -> Result<(), LocatedError> {
        let len = self.read("bytes", decode::read_bin_len)?;
        wire.extend_from_slice(self.take(len as usize)?);
        Ok(())
    }

    fn timestamp(&mut self) -> Result<(i64, i32), LocatedError> {
        let at = self.at;
        let time = if self.peek()? == ValueKind::Text {
            time::parse_timestamp(&self.text()?)
        } else {
            let (kind, bytes) = self.extension()?;
            if kind == TIMESTAMP { timestamp(bytes) } else { None }
        };
        time.ok_or_else(|| LocatedError::new(at, "timestamp outside of the years 1 to 9999"))
    }

    fn skip_value(&mut self, depth_max: usize) -> Result<(), LocatedError> {
        match self.peek()? {
            ValueKind::Map | ValueKind::List if depth_max == 0 => Err(self.error_here("nested too deeply")),
            ValueKind::Map => {
                let mut open = self.begin_map()?;
                while self.next_key(&mut open)? {
                    self.skip_value(depth_max - 1)?;
                    self.skip_value(depth_max - 1)?;
                }
                Ok(())
            }
            ValueKind::List => {
                let mut open = self.begin_list()?;
                while self.next_element(&mut open)? {
                    self.skip_value(depth_max - 1)?;
                }
                Ok(())
            }
            ValueKind::Text => self.text().map(drop),
            ValueKind::Bytes => {
                let len = self.read("bytes", decode::read_bin_len)?;
                self.take(len as usize).map(drop)
            }
            ValueKind::Number => self.number().map(drop),
            ValueKind::Bool => self.bool().map(drop),
            ValueKind::Null => self.null(),
            ValueKind::Time => self.extension().map(drop),
        }
    }
}

/// The three forms of a timestamp.
fn timestamp(bytes: &[u8]) -> Option<(i64, i32)> {
    let (seconds, nanos) = match bytes.len() {
        4 => (u32::from_be_bytes(*bytes.first_chunk()?).into(), 0),
        8 => {
            let both = u64::from_be_bytes(*bytes.first_chunk()?);
            ((both & ((1 << 34) - 1)) as i64, (both >> 34) as u32)
        }
        12 => (i64::from_be_bytes(*bytes.last_chunk()?), u32::from_be_bytes(*bytes.first_chunk()?)),
        _ => return None,
    };
    let is_in_range = time::TIMESTAMP_SECONDS.contains(&seconds) && nanos < 1_000_000_000;
    is_in_range.then_some((seconds, nanos as i32))
}
