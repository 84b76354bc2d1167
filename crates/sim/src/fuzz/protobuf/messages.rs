//! Random messages on the wire: like those of encoders, and others that only the format allows.

use thalweg_protobuf::wire::{Tag, WireType, put_tag, put_varint};
use thalweg_protobuf::{Field, Kind, MessageType};

use crate::random::Random;

/// Nesting of messages.
const DEPTH_MAX: usize = 4;

pub(super) fn random(random: &mut Random, of: MessageType<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    message(random, of, DEPTH_MAX, &mut out);
    out
}

fn message(random: &mut Random, of: MessageType<'_>, depth: usize, out: &mut Vec<u8>) {
    let fields: Vec<Field<'_>> = of.fields().chain(of.extensions()).collect();
    for _ in 0..random.below(2 * fields.len() + 1) {
        if random.one_in(12) {
            unknown(random, out);
            continue;
        }
        let found = random.pick(&fields);
        if found.kind().is_packable() && found.is_repeated() && random.one_in(2) {
            let mut row = Vec::new();
            for _ in 0..random.size(20) {
                value(random, found, 0, &mut row);
            }
            len_prefixed(out, found.number(), &row);
        } else {
            field(random, found, depth, out);
        }
    }
}

/// One record of a field.
fn field(random: &mut Random, field: Field<'_>, depth: usize, out: &mut Vec<u8>) {
    let kind = field.kind();
    if kind.is_message() && depth == 0 {
        return;
    }
    if let Some((key, of_value)) = field.map_entry() {
        let mut entry = Vec::new();
        for part in [key, of_value] {
            if !random.one_in(6) {
                self::field(random, part, depth, &mut entry);
            }
        }
        return len_prefixed(out, field.number(), &entry);
    }
    put_tag(out, Tag::new(field.number(), kind.wire_type()));
    value(random, field, depth, out);
    if kind == Kind::Group {
        put_tag(out, Tag::new(field.number(), WireType::EndGroup));
    }
}

fn value(random: &mut Random, field: Field<'_>, depth: usize, out: &mut Vec<u8>) {
    match field.kind() {
        Kind::Message | Kind::Group => {
            let mut inner = Vec::new();
            if let Some(of) = field.message_type() {
                message(random, of, depth.saturating_sub(1), &mut inner);
            }
            if field.kind() == Kind::Message {
                put_varint(out, inner.len() as u64);
            }
            out.extend_from_slice(&inner);
        }
        Kind::String => {
            let text: String =
                (0..random.size(20)).map(|_| random.pick(&['a', 'Z', 'é', '€', '🦀', '\0'])).collect();
            put_varint(out, text.len() as u64);
            out.extend_from_slice(text.as_bytes());
        }
        Kind::Bytes => {
            let bytes: Vec<u8> = (0..random.size(20)).map(|_| random.number() as u8).collect();
            put_varint(out, bytes.len() as u64);
            out.extend_from_slice(&bytes);
        }
        Kind::Enum => put_varint(out, random.pick(&[0, 1, 100, 5, 6, 7, (-2_i64).cast_unsigned()])),
        kind => match kind.wire_type() {
            WireType::Fixed32 => out.extend_from_slice(&(random.number() as u32).to_le_bytes()),
            WireType::Fixed64 => out.extend_from_slice(&random.number().to_le_bytes()),
            _ => put_varint(out, number(random)),
        },
    }
}

/// A varint's value: small, of any length, or negative.
fn number(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => random.below(4) as u64,
        1 => random.number(),
        2 => (random.below(1000) as u64).wrapping_neg(),
        _ => random.number() >> random.below(64),
    }
}

fn len_prefixed(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_tag(out, Tag::new(number, WireType::Len));
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A record with an unused number, of any wire type.
fn unknown(random: &mut Random, out: &mut Vec<u8>) {
    let number = random.between(10_000, 12_000) as u32;
    match random.below(5) {
        0 => {
            put_tag(out, Tag::new(number, WireType::Varint));
            put_varint(out, random.number());
        }
        1 => {
            put_tag(out, Tag::new(number, WireType::Fixed32));
            out.extend_from_slice(b"1234");
        }
        2 => {
            put_tag(out, Tag::new(number, WireType::Fixed64));
            out.extend_from_slice(b"12345678");
        }
        3 => len_prefixed(out, number, b"\x08\x01"),
        _ => {
            put_tag(out, Tag::new(number, WireType::StartGroup));
            put_tag(out, Tag::new(1, WireType::Varint));
            put_varint(out, 7);
            put_tag(out, Tag::new(number, WireType::EndGroup));
        }
    }
}
