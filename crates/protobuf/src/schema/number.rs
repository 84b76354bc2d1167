//! Numbers, booleans and enums, from the wire to slot words.
//!
//! The word of an integer, enum or `bool` is the value of its varint: sign-extended, but not zigzag. The word of a
//! fixed-size number is its bits.

use super::table::Op;
use crate::wire::{Reader, WireError, unzigzag};

/// Reads one value in slot form. The caller checks whether a closed enum has it.
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

/// Converts packed varints to slot form in place.
#[inline(always)]
pub(crate) fn convert_packed(op: Op, words: &mut [u64]) {
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
