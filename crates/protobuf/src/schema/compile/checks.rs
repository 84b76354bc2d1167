//! Checks of names and numbers: syntax, range and uniqueness.

use std::collections::HashMap;
use std::ops::Range;

use super::at;
use crate::schema::error::{Problem, SchemaError};
use crate::schema::kind::{Cardinality, Kind};
use crate::schema::names::{json_name, pascal_case_value};
use crate::schema::pool::{FieldData, Pool};
use crate::schema::raw;
use crate::schema::table::Entry;
use crate::wire::NUMBER_MAX;

/// Maximum number of fields of a message, including its extensions.
const FIELDS_MAX: usize = u16::MAX as usize - 1;
/// Maximum number of elements of one kind (messages, enums, fields, …) in a schema.
const ELEMENTS_MAX: usize = 1 << 24;
/// Maximum length of a full name, in bytes. Each element keeps its own, so a long package name is multiplied.
const NAME_LEN_MAX: usize = 1024;

/// Checks a name without dots.
pub(super) fn check_name(name: &str) -> Result<(), Problem> {
    if is_identifier(name) { Ok(()) } else { Err(Problem::Name(name.to_owned())) }
}

/// Checks a package name, which may have dots or be empty.
pub(super) fn check_package(name: &str) -> Result<(), Problem> {
    check_full_name_len(name)?;
    let is_right = name.is_empty() || name.split('.').all(is_identifier);
    if is_right { Ok(()) } else { Err(Problem::Name(name.to_owned())) }
}

pub(super) fn check_full_name_len(name: &str) -> Result<(), Problem> {
    check_count("bytes in a full name", name.len(), NAME_LEN_MAX)
}

/// Checks the number of elements of one kind.
pub(super) fn check_elements(what: &'static str, count: usize) -> Result<(), Problem> {
    check_count(what, count, ELEMENTS_MAX)
}

fn check_count(what: &'static str, count: usize, max: usize) -> Result<(), Problem> {
    if count <= max { Ok(()) } else { Err(Problem::TooMany { what, max }) }
}

/// Checks a field number. In a message set, numbers are type ids and may be larger.
pub(super) fn check_number(number: i32, is_in_set: bool) -> Result<(), Problem> {
    let most = if is_in_set { i32::MAX - 1 } else { NUMBER_MAX as i32 };
    let is_right = (1..=most).contains(&number) && !(19_000..20_000).contains(&number);
    if is_right { Ok(()) } else { Err(Problem::Number(number)) }
}

/// Checks JSON names by protoc's rules: first the default names, which field masks use, then those set with
/// `json_name`. If names may conflict (`is_loose`), only names set with `json_name` must be unique.
pub(super) fn check_json_names(
    pool: &Pool,
    fields: Range<u32>,
    file: u32,
    is_loose: bool,
) -> Result<(), SchemaError> {
    let fields = &pool.fields[fields.start as usize..fields.end as usize];
    let check = |which, names: Vec<(&FieldData, String)>| {
        let mut known = HashMap::with_capacity(names.len());
        for (field, name) in names {
            if let Some(other) = known.insert(name.clone(), field) {
                let problem = Problem::JsonName { which, name, other: pool.full_name(other) };
                let file = &pool.files[file as usize].name;
                return Err(at(file, &pool.full_name(field), problem));
            }
        }
        Ok(())
    };
    let default = |field: &FieldData| json_name(field.name.text());
    let json_name = |field: &FieldData| field.json_name.text().to_owned();
    if is_loose {
        let custom = fields.iter().filter(|field| json_name(field) != default(field));
        return check("JSON name", custom.map(|field| (field, json_name(field))).collect());
    }
    check("default JSON name", fields.iter().map(|field| (field, default(field))).collect())?;
    check("JSON name", fields.iter().map(|field| (field, json_name(field))).collect())
}

/// Checks the names of enum values by protoc's rule: aliases of one number may share a name.
pub(super) fn check_value_names(declared: &raw::Enum<'_>) -> Result<(), Problem> {
    let mut known: HashMap<String, &raw::EnumValue<'_>> = HashMap::with_capacity(declared.values.len());
    for value in &declared.values {
        let name = pascal_case_value(declared.name, value.name);
        if let Some(other) = known.get(&name)
            && other.number != value.number
        {
            let (value, other) = (value.name.to_owned(), other.name.to_owned());
            return Err(Problem::ValueName { value, name, other });
        }
        known.entry(name).or_insert(value);
    }
    Ok(())
}

/// Checks a message with all its fields and extensions, sorted by number: unique numbers, and the form of map entries.
pub(super) fn check_message(pool: &Pool, message: u32, entries: &[Entry]) -> Result<(), SchemaError> {
    let data = &pool.messages[message as usize];
    let here = |problem| at(&pool.files[data.file as usize].name, &data.name, problem);
    check_count("fields", entries.len(), FIELDS_MAX).map_err(here)?;
    if let Some(pair) = entries.windows(2).find(|pair| pair[0].number == pair[1].number) {
        let [first, second] = [&pair[0], &pair[1]].map(|entry| pool.field(entry));
        let problem = Problem::DuplicateNumber { number: pair[0].number, other: pool.full_name(first) };
        let file = &pool.files[second.file as usize].name;
        return Err(at(file, &pool.full_name(second), problem));
    }
    if data.map_entry && !(data.oneofs.is_empty() && is_map_entry(entries)) {
        return Err(here(Problem::MapEntry));
    }
    Ok(())
}

fn is_map_entry(entries: &[Entry]) -> bool {
    let [key, value] = entries else { return false };
    (key.number, value.number) == (1, 2)
        && key.kind.is_map_key()
        && value.kind != Kind::Group
        && !value.is_map()
        && entries.iter().all(|entry| entry.cardinality() == Cardinality::Optional)
}

fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
