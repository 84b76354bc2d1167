//! The Protobuf wire format, as far as the messages of health checks and load reports need it.

use std::str;

/// Fields of a message, in the order of their encoding.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a>(&'a [u8]);

/// Value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// Error for bytes that are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed Protobuf message")]
pub struct MalformedMessage;

type Read<T> = Result<T, MalformedMessage>;

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn take(&mut self, len: u64) -> Read<&'a [u8]> {
        let len = usize::try_from(len).map_err(|_| MalformedMessage)?;
        let (taken, rest) = self.0.split_at_checked(len).ok_or(MalformedMessage)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(MalformedMessage)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn varint(&mut self) -> Read<u64> {
        let mut value = 0;
        for shift in (0..VARINT_LEN_MAX).map(|index| 7 * index) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(MalformedMessage)
    }

    fn field(&mut self) -> Read<(u32, Value<'a>)> {
        let tag = u32::try_from(self.varint()?).map_err(|_| MalformedMessage)?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let len = self.varint()?;
                Value::Bytes(self.take(len)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            // Groups (3, 4) occur in no message of gRPC.
            _ => return Err(MalformedMessage),
        };
        if tag >> 3 == 0 { Err(MalformedMessage) } else { Ok((tag >> 3, value)) }
    }
}

/// A 64-bit number takes at most ten bytes of seven bits.
const VARINT_LEN_MAX: u32 = 10;

impl<'a> Iterator for Fields<'a> {
    type Item = Read<(u32, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Value<'a> {
    pub(crate) fn double(self) -> Read<f64> {
        match self {
            Self::Fixed64(bits) => Ok(f64::from_bits(bits)),
            _ => Err(MalformedMessage),
        }
    }

    pub(crate) fn varint(self) -> Read<u64> {
        match self {
            Self::Varint(value) => Ok(value),
            _ => Err(MalformedMessage),
        }
    }

    pub(crate) fn bytes(self) -> Read<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(MalformedMessage),
        }
    }

    pub(crate) fn text(self) -> Read<&'a str> {
        str::from_utf8(self.bytes()?).map_err(|_| MalformedMessage)
    }
}

/// Appends a length-delimited field: a string or a message.
pub(crate) fn push_bytes(message: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    push_varint(message, u64::from(number) << 3 | 2);
    push_varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

/// Appends a number, unless it is 0: that is its default.
pub(crate) fn push_number(message: &mut Vec<u8>, number: u8, value: u64) {
    if value != 0 {
        push_varint(message, u64::from(number) << 3);
        push_varint(message, value);
    }
}

fn push_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_types_are_read() {
        let check = |message: &[u8], expected: Read<Vec<(u32, Value<'_>)>>| {
            assert_eq!(Fields::new(message).collect::<Read<Vec<_>>>(), expected, "{message:?}");
        };
        check(&[], Ok(vec![]));
        check(b"\x08\x96\x01", Ok(vec![(1, Value::Varint(150))]));
        check(b"\x12\x02hi\x1d\x01\0\0\0", Ok(vec![(2, Value::Bytes(b"hi")), (3, Value::Fixed32(1))]));
        check(b"\x21\x01\0\0\0\0\0\0\x80", Ok(vec![(4, Value::Fixed64(1 << 63 | 1))]));
        let longest = [&[8][..], &[0xff; 9], &[1]].concat();
        check(&longest, Ok(vec![(1, Value::Varint(u64::MAX))]));
        for malformed in [
            &b"\x08"[..],
            b"\x08\x96",
            b"\x12\x03hi",
            b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x1d\0\0\0",
            b"\x21\0",
            b"\x0b",
            b"\x00\x01",
            &[&[8][..], &[0xff; 10], &[1]].concat(),
        ] {
            check(malformed, Err(MalformedMessage));
        }
    }

    #[test]
    fn written_fields_are_read_again() {
        let mut message = Vec::new();
        push_bytes(&mut message, 1, "ü".repeat(100).as_bytes());
        push_number(&mut message, 2, 0);
        push_number(&mut message, 3, u64::MAX);
        let fields: Vec<_> = Fields::new(&message).map(Result::unwrap).collect();
        let text = "ü".repeat(100);
        assert_eq!(fields, [(1, Value::Bytes(text.as_bytes())), (3, Value::Varint(u64::MAX))]);
        assert_eq!(fields[0].1.text(), Ok(&*text));
        assert_eq!(Value::Bytes(b"\xff").text(), Err(MalformedMessage));
    }
}
