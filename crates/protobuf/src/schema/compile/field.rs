//! Compiles one field or extension from its descriptor and features.

use super::checks::{check_name, check_number};
use super::{join, not_a};
use crate::schema::defaults;
use crate::schema::error::Problem;
use crate::schema::features::{Features, FieldPresence, number};
use crate::schema::key::Key;
use crate::schema::kind::{Cardinality, Kind};
use crate::schema::names::json_name;
use crate::schema::pool::{DefaultValue, FieldData, NONE, Pool, Symbol};
use crate::schema::raw;
use crate::schema::table::{Entry, Flags};

/// Returns both halves of a field or extension of `message`, declared in `scope`.
pub(super) fn field(
    pool: &Pool,
    field: &raw::Field<'_>,
    message: u32,
    file: u32,
    scope: &str,
    inherited: Features,
) -> Result<(FieldData, Entry), Problem> {
    let edition = pool.files[file as usize].edition;
    let features = inherited.with(edition, &field.options, number::FIELD)?;
    check_name(field.name)?;
    let set = pool.messages[message as usize].message_set;
    check_number(field.number, set)?;
    let cardinality = match (field.label, features.presence) {
        (3, _) => Cardinality::Repeated,
        (2, _) | (0 | 1, FieldPresence::Required) => Cardinality::Required,
        (0 | 1, _) => Cardinality::Optional,
        (label, _) => return Err(Problem::Label(label)),
    };
    let (kind, type_index) = kind(pool, field, scope)?;
    let repeated = cardinality == Cardinality::Repeated;
    let map = kind.is_message() && pool.messages[type_index as usize].map_entry;
    if map && !(repeated && kind == Kind::Message) {
        return Err(Problem::MapEntry);
    }
    if field.oneof.is_some() && cardinality != Cardinality::Optional {
        return Err(Problem::Oneof(field.oneof.unwrap_or(0)));
    }
    if set && (field.extendee.is_none() || kind != Kind::Message || cardinality != Cardinality::Optional) {
        return Err(Problem::Invalid("a message set has only extensions that are optional messages"));
    }
    let in_entry = pool.messages[message as usize].map_entry;
    let delimited = features.delimited && kind == Kind::Message && !map && !in_entry;
    let packed = match raw::option(&field.options, 2)? {
        Some(packed) => packed != 0,
        None => features.packed,
    };
    let explicit = !repeated
        && (kind.is_message()
            || field.oneof.is_some()
            || field.extendee.is_some()
            || field.proto3_optional
            || features.presence != FieldPresence::Implicit);
    let default = match field.default {
        Some(_) if repeated || kind.is_message() => {
            return Err(Problem::Invalid("only singular fields other than messages can have defaults"));
        }
        Some(_) if !explicit => {
            return Err(Problem::Invalid("a field without presence cannot have a default"));
        }
        Some(text) => {
            defaults::parse(pool, kind, type_index, text).ok_or_else(|| Problem::Default(text.to_owned()))?
        }
        None if kind == Kind::Enum => {
            DefaultValue::Word(i64::from(pool.enums[type_index as usize].values[0].number) as u64)
        }
        None => DefaultValue::Word(0),
    };
    if kind == Kind::Enum && !explicit && !repeated && pool.enums[type_index as usize].values[0].number != 0 {
        return Err(Problem::Invalid("a field without presence needs an enum whose first value is 0"));
    }
    let kind = if delimited { Kind::Group } else { kind };
    let flags = Flags::of(&[
        (repeated, Flags::REPEATED),
        (map, Flags::MAP),
        (packed && repeated && kind.is_packable(), Flags::PACKED),
        (explicit, Flags::EXPLICIT),
        (features.utf8 && kind == Kind::String, Flags::UTF8),
        (kind == Kind::Enum && pool.enums[type_index as usize].closed, Flags::CLOSED_ENUM),
        (cardinality == Cardinality::Required, Flags::REQUIRED),
        (field.extendee.is_some(), Flags::EXTENSION),
    ]);
    let name = match field.extendee {
        Some(_) => Key::new(&format!("[{}]", join(scope, field.name))),
        None => Key::new(field.name),
    };
    let json_text = field.json_name.map_or_else(|| json_name(field.name), ToOwned::to_owned);
    let is_other = field.extendee.is_none() && json_text != field.name;
    let json_name = if is_other { Key::new(&json_text) } else { name.clone() };
    let data = FieldData {
        name,
        json_name,
        message,
        oneof: field.oneof.map_or(NONE, |oneof| oneof as u32),
        file,
        entry: 0,
        default,
        options: field.options.as_slice().into(),
    };
    Ok((data, Entry::new(field.number as u32, kind, flags, type_index)))
}

/// Returns the type of a field, and the index of its message or enum.
fn kind(pool: &Pool, field: &raw::Field<'_>, scope: &str) -> Result<(Kind, u32), Problem> {
    let kind = match field.kind {
        Some(number) => Some(Kind::from_number(number).ok_or(Problem::FieldType(number))?),
        None => None,
    };
    if let Some(kind) = kind.filter(|kind| !kind.is_message() && *kind != Kind::Enum) {
        return Ok((kind, NONE));
    }
    let name = field.type_name.ok_or(Problem::Invalid("the field has no type"))?;
    match (pool.resolve(scope, name), kind) {
        (None, _) => Err(Problem::NotFound(name.to_owned())),
        (Some(Symbol::Message(index)), None) => Ok((Kind::Message, index)),
        (Some(Symbol::Message(index)), Some(kind)) if kind.is_message() => Ok((kind, index)),
        (Some(Symbol::Enum(index)), None | Some(Kind::Enum)) => Ok((Kind::Enum, index)),
        (_, Some(Kind::Enum)) => Err(not_a(name, "an enum")),
        _ => Err(not_a(name, "a message")),
    }
}
