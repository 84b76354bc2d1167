//! Varints and tags as encoded: position and length.

use thalweg_protobuf::wire::{VARINT_LEN_MAX, WireType, varint_len};

use super::span::Span;

/// A varint: seven bits per byte, lowest first; the eighth bit is set if more bytes follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Varint {
    /// The lowest 64 bits.
    pub value: u64,
    /// Position: 1 to 10 bytes.
    pub span: Span,
    /// Whether there are bits beyond the 64th, which decoders drop or reject.
    pub overflows: bool,
}

impl Varint {
    /// Returns the number of unnecessary bytes. Encoders write none; decoders accept them.
    pub fn excess_bytes(&self) -> usize {
        self.span.len().saturating_sub(varint_len(self.value))
    }
}

/// A field number and wire type as a varint: `(number << 3) | wire type`.
pub type Tag = Varint;

impl Tag {
    /// Returns the field number, from 1 to 536 870 911.
    pub fn number(&self) -> u32 {
        (self.value >> 3) as u32
    }

    /// Returns the wire type, or `None` for 6 and 7.
    pub fn wire_type(&self) -> Option<WireType> {
        WireType::from_bits((self.value & 7) as u32)
    }
}

/// Returns the name of a wire type in the format's documentation: `VARINT`, `LEN`, …
pub fn wire_type_name(wire_type: WireType) -> &'static str {
    match wire_type {
        WireType::Varint => "VARINT",
        WireType::Fixed64 => "I64",
        WireType::Len => "LEN",
        WireType::StartGroup => "SGROUP",
        WireType::EndGroup => "EGROUP",
        WireType::Fixed32 => "I32",
    }
}

/// Reads the varint at the start of `bytes`, which are at offset `start`. On error, returns whether it is too long
/// rather than truncated.
pub(super) fn read_varint(bytes: &[u8], start: usize) -> Result<Varint, bool> {
    let mut value = 0;
    for (index, byte) in bytes.iter().take(VARINT_LEN_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte contributes only the 64th bit.
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            let span = Span { start, end: start + index + 1 };
            return Ok(Varint { value, span, overflows: index == VARINT_LEN_MAX - 1 && bits > 1 });
        }
    }
    Err(bytes.len() >= VARINT_LEN_MAX)
}
