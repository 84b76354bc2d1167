//! Checks of extension ranges and their extension declarations.

use std::collections::HashSet;

use super::found_errors::FoundErrors;
use super::messages::MESSAGE_SET;
use crate::sources::builtin::DESCRIPTOR;
use crate::sources::ids::{FieldId, MessageId};
use crate::sources::option_value::OptionMessage;
use crate::sources::parse::FIELD_NUMBER_MAX;
use crate::sources::pool::{Field, FieldKind, Pool, TypeRef};

/// `declaration` of `ExtensionRangeOptions`
const DECLARATION: i32 = 2;
/// `verification` of `ExtensionRangeOptions`: 0 is DECLARATION, 1 is UNVERIFIED.
const VERIFICATION: i32 = 3;

/// Field numbers of `ExtensionRangeOptions.Declaration`.
mod declaration {
    pub(super) const NUMBER: i32 = 1;
    pub(super) const FULL_NAME: i32 = 2;
    pub(super) const TYPE: i32 = 3;
    pub(super) const RESERVED: i32 = 5;
    pub(super) const REPEATED: i32 = 6;
}

pub(super) fn check_ranges(pool: &Pool, message: MessageId, errors: &mut FoundErrors) {
    let declared = &pool[message];
    let is_message_set = declared.options.as_deref().is_some_and(|options| options.value.flag(MESSAGE_SET));
    let max = if is_message_set { i32::MAX - 1 } else { FIELD_NUMBER_MAX };
    let mut names = HashSet::new();
    for extension in &declared.extension_ranges {
        let range = extension.range;
        if range.end - 1 > max {
            errors.push((range.at, format!("extension numbers cannot be greater than {max}")));
        }
        let Some(options) = extension.options.as_deref() else { continue };
        if options.value.messages(DECLARATION).next().is_none() {
            continue;
        }
        if options.value.varint(VERIFICATION) == Some(1) {
            let message = "an extension range with declarations cannot be UNVERIFIED";
            errors.push((range.at, message.to_owned()));
            return;
        }
        let mut numbers = HashSet::new();
        for declaration in options.value.messages(DECLARATION) {
            let number = declaration.varint(declaration::NUMBER).unwrap_or(0) as i32;
            if !(range.start..range.end).contains(&number) {
                errors.push((range.at, format!("declared extension number {number} is not in the range")));
            }
            if !numbers.insert(number) {
                errors.push((range.at, format!("extension number {number} is declared twice")));
            }
            if let Err(message) = check_declaration(declaration, number, &mut names) {
                errors.push((range.at, message));
            }
        }
    }
}

fn check_declaration(
    declaration: &OptionMessage,
    number: i32,
    names: &mut HashSet<String>,
) -> Result<(), String> {
    let (name, kind) = (declaration.text(declaration::FULL_NAME), declaration.text(declaration::TYPE));
    let (Some(name), Some(kind)) = (&name, &kind) else {
        if name.is_some() || kind.is_some() || !declaration.flag(declaration::RESERVED) {
            return Err(format!("declared extension {number} needs both full_name and type"));
        }
        return Ok(());
    };
    if !names.insert(name.clone()) {
        return Err(format!("extension name \"{name}\" is declared twice"));
    }
    check_full_name(name)?;
    if is_scalar(kind) { Ok(()) } else { check_full_name(kind) }
}

fn check_full_name(name: &str) -> Result<(), String> {
    let Some(rest) = name.strip_prefix('.') else {
        return Err(format!("\"{name}\" must begin with a dot"));
    };
    let is_identifier = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if rest.split('.').all(is_identifier) { Ok(()) } else { Err(format!("\"{name}\" is not a full name")) }
}

fn is_scalar(kind: &str) -> bool {
    kind == "enum" || (kind != "group" && FieldKind::from_keyword(kind.as_bytes()).is_some())
}

/// Checks that an extension matches its declaration in the extension range.
pub(super) fn check_declared(pool: &Pool, field: FieldId, errors: &mut FoundErrors) {
    let field = &pool[field];
    let (true, Some(message)) = (field.is_extension(), field.message) else { return };
    if *pool[pool[message].file].name == *DESCRIPTOR {
        return;
    }
    let number = field.number;
    let range = pool[message].extension_range(number);
    let Some(options) = range.and_then(|range| range.options.as_deref()) else { return };
    let mut declarations = options.value.messages(DECLARATION).peekable();
    let must_declare = declarations.peek().is_some() || options.value.varint(VERIFICATION) == Some(0);
    let declaration = declarations.find(|it| it.varint(declaration::NUMBER) == Some(number as u64));
    let owner = &pool[message].full_name;
    let mut fail = |message: String| errors.push((field.at.extendee, message));
    let Some(declaration) = declaration else {
        if must_declare {
            fail(format!(
                "\"{owner}\" does not declare extension {number}, which its extension range requires"
            ));
        }
        return;
    };
    if declaration.flag(declaration::RESERVED) {
        return fail(format!("\"{owner}\" reserves extension number {number} in a declaration"));
    }
    if let Some(expected) = declaration.text(declaration::TYPE).filter(|kind| !kind.is_empty()) {
        let actual = type_name(pool, field);
        if expected != actual {
            fail(format!(
                "extension {number} of \"{owner}\" must have the type \"{expected}\", not \"{actual}\""
            ));
        }
    }
    if let Some(expected) = declaration.text(declaration::FULL_NAME).filter(|name| !name.is_empty()) {
        let actual = match field.parent {
            Some(parent) => format!(".{}.{}", pool[parent].full_name, field.name),
            None => format!(".{}", crate::sources::pool::qualified(&pool[field.file].package, &field.name)),
        };
        if expected != actual {
            fail(format!("extension {number} of \"{owner}\" must be \"{expected}\", not \"{actual}\""));
        }
    }
    if declaration.flag(declaration::REPEATED) != field.is_repeated() {
        let expected = if field.is_repeated() { "optional" } else { "repeated" };
        fail(format!("extension {number} of \"{owner}\" must be {expected}"));
    }
}

fn type_name(pool: &Pool, field: &Field) -> String {
    match field.type_ref {
        TypeRef::Message(message) => format!(".{}", pool[message].full_name),
        TypeRef::Enum(declared) => format!(".{}", pool[declared].full_name),
        TypeRef::None => field.kind.map_or("", FieldKind::keyword).to_owned(),
    }
}
