//! Checks the naming style of edition 2024 and the limits of edition 2026.

use super::found_errors::FoundErrors;
use crate::sources::features::{Features, number, value};
use crate::sources::ids::FileId;
use crate::sources::owner::Owner;
use crate::sources::pool::Pool;

/// Returns the reason why a name does not match its style.
type NamingStyle = fn(&str) -> Option<&'static str>;

pub(super) fn check(pool: &Pool, file: FileId, owner: Owner, errors: &mut FoundErrors) {
    let features = features(pool, file, owner);
    let style = features.get(number::ENFORCE_NAMING_STYLE);
    if style == value::STYLE_LEGACY || style == 0 {
        return;
    }
    let (what, name, rule): (&str, &str, NamingStyle) = match owner {
        Owner::File(_) if pool[file].package.is_empty() => return,
        Owner::File(_) => ("package", &pool[file].package, lower_snake_case),
        Owner::Message(message) if pool[message].is_map_entry => return,
        Owner::Message(message) => ("message", &pool[message].name, title_case),
        Owner::Field(field) => ("field", &pool[field].name, lower_snake_case),
        Owner::Oneof(message, index) => {
            ("oneof", &pool[message].oneofs[index as usize].name, lower_snake_case)
        }
        Owner::Enum(declared) => ("enum", &pool[declared].name, title_case),
        Owner::Value(declared, index) => {
            ("enum value", &pool[declared].values[index as usize].name, upper_snake_case)
        }
        Owner::Service(service) => ("service", &pool[service].name, title_case),
        Owner::Method(service, index) => ("method", &pool[service].methods[index as usize].name, title_case),
        Owner::Range(..) => return,
    };
    if let Some(why) = rule(name) {
        let message =
            format!("{what} name \"{name}\" {why}: or set features.enforce_naming_style = STYLE_LEGACY");
        errors.push((owner.name_at(pool), message));
    }
}

/// Returns the features that apply to a declaration.
fn features(pool: &Pool, file: FileId, owner: Owner) -> Features {
    let outer = match owner {
        Owner::File(_) | Owner::Service(_) => pool[file].features,
        Owner::Message(message) | Owner::Oneof(message, _) | Owner::Range(message, _) => {
            pool[message].features
        }
        Owner::Field(field) => pool[field].features,
        Owner::Enum(declared) | Owner::Value(declared, _) => pool[declared].features,
        Owner::Method(service, _) => {
            let options = pool[service].options.as_deref();
            pool[file].features.with(options.map_or(Features::default(), |options| options.explicit))
        }
    };
    let options = owner.options(pool).as_deref();
    outer.with(options.map_or(Features::default(), |options| options.explicit))
}

fn title_case(name: &str) -> Option<&'static str> {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Some("must be in TitleCase");
    }
    (!name.starts_with(|c: char| c.is_ascii_uppercase())).then_some("must begin with a capital letter")
}

fn lower_snake_case(name: &str) -> Option<&'static str> {
    let is_allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.');
    if !name.bytes().all(is_allowed) {
        return Some("must be in lower_snake_case");
    }
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Some("must begin with a lower case letter");
    }
    has_bad_underscores(name).then_some("has a leading or trailing underscore, or one that no letter follows")
}

fn upper_snake_case(name: &str) -> Option<&'static str> {
    if !name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_') {
        return Some("must be in UPPER_SNAKE_CASE");
    }
    if !name.starts_with(|c: char| c.is_ascii_uppercase()) {
        return Some("must begin with a capital letter");
    }
    has_bad_underscores(name).then_some("has a leading or trailing underscore, or one that no letter follows")
}

fn has_bad_underscores(name: &str) -> bool {
    let bytes = name.as_bytes();
    let is_followed_badly = |pair: &[u8]| pair[0] == b'_' && !pair[1].is_ascii_alphabetic();
    bytes.first() == Some(&b'_') || bytes.last() == Some(&b'_') || bytes.windows(2).any(is_followed_badly)
}
