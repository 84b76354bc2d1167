//! Scalar option values in wire form.

use crate::sources::ids::EnumId;
use crate::sources::option_value::OptionValue;
use crate::sources::pool::{FieldKind, Pool};

/// Converts a sign-extended integer to wire form.
pub(super) fn number_value(kind: FieldKind, value: u64) -> OptionValue {
    let signed = value as i64;
    match kind {
        FieldKind::Sint32 | FieldKind::Sint64 => OptionValue::Varint((signed << 1 ^ signed >> 63) as u64),
        FieldKind::Fixed32 | FieldKind::Sfixed32 => OptionValue::Fixed32(value as u32),
        FieldKind::Fixed64 | FieldKind::Sfixed64 => OptionValue::Fixed64(value),
        _ => OptionValue::Varint(value),
    }
}

pub(super) fn float_value(kind: FieldKind, value: f64) -> OptionValue {
    match kind {
        FieldKind::Float => OptionValue::Fixed32((value as f32).to_bits()),
        _ => OptionValue::Fixed64(value.to_bits()),
    }
}

pub(super) fn enum_number(pool: &Pool, declared: EnumId, name: &str) -> Option<i32> {
    pool.value_named(declared, name).map(|value| value.number)
}
