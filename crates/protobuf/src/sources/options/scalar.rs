//! Scalar option values in wire form.

use crate::sources::ids::EnumId;
use crate::sources::option_value::OptionValue;
use crate::sources::pool::{Kind, Pool};

/// Converts a sign-extended integer to wire form.
pub(super) fn number_value(kind: Kind, value: u64) -> OptionValue {
    let signed = value as i64;
    match kind {
        Kind::Sint32 | Kind::Sint64 => OptionValue::Varint((signed << 1 ^ signed >> 63) as u64),
        Kind::Fixed32 | Kind::Sfixed32 => OptionValue::Fixed32(value as u32),
        Kind::Fixed64 | Kind::Sfixed64 => OptionValue::Fixed64(value),
        _ => OptionValue::Varint(value),
    }
}

pub(super) fn float_value(kind: Kind, value: f64) -> OptionValue {
    match kind {
        Kind::Float => OptionValue::Fixed32((value as f32).to_bits()),
        _ => OptionValue::Fixed64(value.to_bits()),
    }
}

pub(super) fn enum_number(pool: &Pool, declared: EnumId, name: &str) -> Option<i32> {
    pool.value_named(declared, name).map(|value| value.number)
}
