//! Varints and tags as they are written: where they lie, and how long they are.

use thalweg_protobuf::wire::{VARINT_LEN_MAX, WireType, varint_len};

use super::span::Span;

/// A varint: seven bits a byte, the lowest first; the eighth bit says that there is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Varint {
    /// The lowest 64 bits.
    pub value: u64,
    /// Where it lies: 1 to 10 bytes.
    pub span: Span,
    /// There were bits beyond the 64th, which decoders drop or refuse.
    pub overflows: bool,
}

impl Varint {
    /// By how many bytes it is longer than it need be. Encoders don't do that; decoders take it.
    pub fn excess_bytes(&self) -> usize {
        self.span.len().saturating_sub(varint_len(self.value))
    }
}

/// A field's number and wire type, in a varint: `(number << 3) | wire type`.
pub type Tag = Varint;

impl Tag {
    /// The number of the field, which is from 1 to 536 870 911.
    pub fn number(&self) -> u32 {
        (self.value >> 3) as u32
    }

    /// How the value is written. 6 and 7 have no meaning.
    pub fn wire_type(&self) -> Option<WireType> {
        WireType::from_bits((self.value & 7) as u32)
    }
}

/// The name of a wire type in the documentation of the format: `VARINT`, `LEN` …
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

/// The varint with which `bytes` begin, which lie at `start`; or whether there is none because it does not end in time.
pub(super) fn read_varint(bytes: &[u8], start: usize) -> Result<Varint, bool> {
    let mut value = 0;
    for (index, byte) in bytes.iter().take(VARINT_LEN_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has the 64th bit, and no other.
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            let span = Span { start, end: start + index + 1 };
            return Ok(Varint { value, span, overflows: index == VARINT_LEN_MAX - 1 && bits > 1 });
        }
    }
    Err(bytes.len() >= VARINT_LEN_MAX)
}
