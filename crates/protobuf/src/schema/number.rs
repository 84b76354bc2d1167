//! Numbers, booleans and enums, from the wire to the words that slots hold.
//!
//! What a word holds: an integer, enum or `bool` the value as its varint would have it, sign-extended but not zigzag; a
//! fixed-size number its bits.

use super::table::Op;
use crate::wire::{Reader, WireError, unzigzag};

/// One value, as a slot holds it. Whether a closed enum has it is for the caller to ask.
#[inline(always)]
pub(crate) fn read_number(op: Op, reader: &mut Reader<'_>) -> Result<u64, WireError> {
    Ok(match op {
        Op::Int32 | Op::ClosedEnum => int32(reader.varint()?),
        Op::Uint32 => uint32(reader.varint()?),
        Op::Bool => bool(reader.varint()?),
        Op::Sint32 => sint32(reader.varint()?),
        Op::Sint64 => sint64(reader.varint()?),
        Op::Fixed32 => reader.fixed32()?.into(),
        Op::Fixed64 => reader.fixed64()?,
        _ => reader.varint()?,
    })
}

/// Varints of a row, each to what a slot holds.
#[inline(always)]
pub(crate) fn convert_row(op: Op, words: &mut [u64]) {
    #[inline(always)]
    fn each(words: &mut [u64], convert: impl Fn(u64) -> u64) {
        for word in words {
            *word = convert(*word);
        }
    }
    match op {
        Op::Int32 | Op::ClosedEnum => each(words, int32),
        Op::Uint32 => each(words, uint32),
        Op::Bool => each(words, bool),
        Op::Sint32 => each(words, sint32),
        Op::Sint64 => each(words, sint64),
        _ => {}
    }
}

#[inline(always)]
fn int32(varint: u64) -> u64 {
    i64::from(varint as i32) as u64
}

#[inline(always)]
fn uint32(varint: u64) -> u64 {
    u64::from(varint as u32)
}

#[inline(always)]
fn bool(varint: u64) -> u64 {
    u64::from(varint != 0)
}

#[inline(always)]
fn sint32(varint: u64) -> u64 {
    unzigzag(uint32(varint)) as u64
}

#[inline(always)]
fn sint64(varint: u64) -> u64 {
    unzigzag(varint) as u64
}
