//! Checks of enums.

use std::collections::HashMap;

use super::found_errors::FoundErrors;
use crate::sources::edition::Edition;
use crate::sources::ids::EnumId;
use crate::sources::link::{Linker, Scope};
use crate::sources::option_value::OptionMessage;
use crate::sources::pool::{EnumValue, Pool};

/// `allow_alias` of `EnumOptions`
const ALLOW_ALIAS: i32 = 2;
/// `deprecated_legacy_json_field_conflicts` of `EnumOptions`
const JSON_CONFLICTS: i32 = 6;
/// `(pb.enumvalue.json)` of `EnumValueOptions`
const JSON: i32 = 998;

pub(super) fn check(linker: &mut Linker, scope: &Scope, declared: EnumId, errors: &mut FoundErrors) {
    let edition = linker.edition(scope);
    let declared = &linker.pool[declared];
    let option = |number| declared.options.as_deref().is_some_and(|options| options.value.flag(number));
    let allows_conflicts = option(JSON_CONFLICTS) && edition == Edition::PROTO2;
    let mut warnings = Vec::new();
    let conflicts = if allows_conflicts { &mut warnings } else { &mut *errors };
    check_names(&declared.name, &declared.values, conflicts);
    check_json(&declared.values, option(ALLOW_ALIAS), errors);
    if let Some(first) = declared.values.first().filter(|first| first.number != 0)
        && !declared.features.is_closed()
    {
        errors.push((first.number_at, "the first value of an open enum must be 0".to_owned()));
    }
    if !option(ALLOW_ALIAS) {
        let mut numbers: HashMap<i32, &EnumValue> = HashMap::new();
        for value in &declared.values {
            if let Some(other) = numbers.get(&value.number) {
                let message = format!(
                    "\"{}\" has the number of \"{}\": set \"option allow_alias = true;\" if that is intended",
                    value.name, other.name
                );
                errors.push((value.number_at, message));
            } else {
                numbers.insert(value.number, value);
            }
        }
    }
    for (at, message) in warnings {
        linker.pool.warning(scope.file, at, message);
    }
}

/// Checks value names for conflicts: generated code strips the enum's name from them and changes their case.
fn check_names(name: &str, values: &[EnumValue], errors: &mut FoundErrors) {
    let mut seen: HashMap<String, &EnumValue> = HashMap::new();
    for value in values {
        let stripped = pascal_case(without_prefix(name, &value.name));
        let Some(other) = seen.get(&stripped) else {
            seen.insert(stripped, value);
            continue;
        };
        if other.name != value.name && other.number != value.number {
            let message = format!(
                "enum values \"{}\" and \"{}\" have the same name, ignoring case and the enum's name as a prefix",
                value.name, other.name
            );
            errors.push((value.name_at, message));
        }
    }
}

/// Returns the name of a value without the leading name of the enum, ignoring case and underscores.
fn without_prefix<'v>(prefix: &str, value: &'v str) -> &'v str {
    let mut prefix = prefix.bytes().filter(|&byte| byte != b'_').map(|byte| byte.to_ascii_lowercase());
    let mut expected = prefix.next();
    for (index, byte) in value.bytes().enumerate() {
        if expected.is_none() {
            let rest = value[index..].trim_start_matches('_');
            return if rest.is_empty() { value } else { rest };
        }
        if byte == b'_' {
            continue;
        }
        if Some(byte.to_ascii_lowercase()) != expected {
            return value;
        }
        expected = prefix.next();
    }
    value
}

fn pascal_case(name: &str) -> String {
    let mut starts_word = true;
    let mut cased = String::with_capacity(name.len());
    for c in name.chars() {
        if c != '_' {
            cased.push(if starts_word { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
        }
        starts_word = c == '_';
    }
    cased
}

/// Returns the custom JSON name of a value, if it has one.
fn custom_json(value: &EnumValue) -> Option<String> {
    value.options.as_deref()?.value.message(JSON).and_then(|json: &OptionMessage| json.text(1))
}

fn check_json(values: &[EnumValue], allows_alias: bool, errors: &mut FoundErrors) {
    let customs: Vec<Option<String>> = values.iter().map(custom_json).collect();
    if customs.iter().all(Option::is_none) {
        return;
    }
    let mut first_of_number: HashMap<i32, usize> = HashMap::new();
    let mut names: HashMap<&str, usize> = HashMap::new();
    for (index, value) in values.iter().enumerate() {
        let &mut first = first_of_number.entry(value.number).or_insert(index);
        if allows_alias && customs[first] != customs[index] {
            let message =
                format!("\"{}\" and \"{}\" need the same JSON string", value.name, values[first].name);
            errors.push((value.name_at, message));
        }
        for name in [Some(&*value.name), customs[index].as_deref()].into_iter().flatten() {
            let &mut other = names.entry(name).or_insert(index);
            if values[other].number != value.number {
                let message = format!("JSON string \"{name}\" is already used by \"{}\"", values[other].name);
                errors.push((value.name_at, message));
            }
        }
    }
}

pub(super) fn check_value(pool: &Pool, declared: EnumId, index: u32, errors: &mut FoundErrors) {
    let value = &pool[declared].values[index as usize];
    super::lifetimes::check_support_of_value(value, errors);
    let Some(custom) = custom_json(value) else { return };
    if custom.contains('\0') {
        errors.push((value.name_at, "a JSON string cannot have a null character".to_owned()));
    }
    if custom.trim().parse::<i32>().is_ok_and(|number| number != value.number) {
        let message = format!("JSON string \"{custom}\" is a number, but not {}", value.number);
        errors.push((value.name_at, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enum_prefix_is_removed_from_value_names() {
        let check = |value: &str, expected: &str| {
            assert_eq!(pascal_case(without_prefix("FooBar", value)), expected);
        };
        check("FOO_BAR_BAZ_QUX", "BazQux");
        check("foobar_x", "X");
        check("FOO_BAR", "FooBar");
        check("FOO_BARBAZ", "Baz");
        check("FOO_BAZ", "FooBaz");
        check("FOO_BAR__", "FooBar");
    }
}
