//! Checks of fields and maps.

use std::fmt::Write as _;

use super::files::{is_lite, is_proto3};
use super::found_errors::FoundErrors;
use super::messages::MESSAGE_SET;
use crate::sources::edition::Edition;
use crate::sources::encode::declarations::json_name;
use crate::sources::ids::{FieldId, MessageId};
use crate::sources::link::lookup::SymbolFilter;
use crate::sources::link::{Linker, Scope};
use crate::sources::owner::Owner;
use crate::sources::parse::map_entry_name;
use crate::sources::pool::{Field, FieldKind, Label, Pool, Symbol, TypeRef};

/// Field numbers of `FieldOptions`.
mod option {
    pub(super) const CTYPE: i32 = 1;
    pub(super) const PACKED: i32 = 2;
    pub(super) const LAZY: i32 = 5;
    pub(super) const JSTYPE: i32 = 6;
    pub(super) const UNVERIFIED_LAZY: i32 = 15;
}

/// Field numbers reserved for Protobuf implementations.
const RESERVED_NUMBERS: std::ops::RangeInclusive<i32> = 19_000..=19_999;

pub(super) fn check(linker: &Linker, scope: &mut Scope, field: FieldId, errors: &mut FoundErrors) {
    let pool = &linker.pool;
    let declared = &pool[field];
    let at = declared.at;
    if is_proto3(pool, scope.file) {
        check_proto3(pool, declared, errors);
    }
    check_options(pool, scope, declared, errors);
    if let Some(message) = declared.message
        && pool[message].options.as_deref().is_some_and(|options| options.value.flag(MESSAGE_SET))
    {
        if !declared.is_extension() {
            errors.push((at.name, "a MessageSet has extensions only, and no fields".to_owned()));
        } else if declared.label != Label::Optional || declared.kind != Some(FieldKind::Message) {
            errors.push((at.kind, "extensions of a MessageSet must be optional messages".to_owned()));
        }
    }
    if let Some(message) = declared.message
        && is_lite(pool, scope.file)
        && !is_lite(pool, pool[message].file)
    {
        let message = "a file with optimize_for = LITE_RUNTIME cannot extend a message of a file without it";
        errors.push((at.extendee, message.to_owned()));
    }
    if let TypeRef::Message(entry) = declared.type_ref
        && pool[entry].is_map_entry
    {
        check_map(linker, scope, declared, entry, errors);
    }
    let default_name = json_name(&declared.name);
    if let Some(name) = &declared.json_name {
        if declared.is_extension() && **name != *default_name {
            errors.push((at.json_name, "an extension has no json_name".to_owned()));
        }
        if name.contains('\0') {
            errors.push((at.json_name, "json_name cannot have a null character".to_owned()));
        }
    }
}

fn check_proto3(pool: &Pool, field: &Field, errors: &mut FoundErrors) {
    let at = field.at;
    if let (true, Some(message)) = (field.is_extension(), field.message) {
        let name = &pool[message].full_name;
        let is_option = name.strip_prefix("google.protobuf.").is_some_and(|name| {
            name.ends_with("Options") || matches!(name, "FeatureSet" | "SourceCodeInfo" | "StreamOptions")
        });
        if !is_option {
            errors.push((at.extendee, "proto3 has extensions for options only".to_owned()));
        }
    }
    if field.label == Label::Required {
        errors.push((at.kind, "proto3 has no required fields".to_owned()));
    }
    if field.default.is_some() {
        errors.push((at.default, "proto3 has no default values".to_owned()));
    }
    if let TypeRef::Enum(declared) = field.type_ref
        && pool[declared].features.is_closed()
    {
        let message =
            format!("enum \"{}\" is closed: proto3 fields have open enums", pool[declared].full_name);
        errors.push((at.kind, message));
    }
    if field.kind == Some(FieldKind::Group) {
        errors.push((at.kind, "proto3 has no groups".to_owned()));
    }
}

fn check_options(pool: &Pool, scope: &Scope, field: &Field, errors: &mut FoundErrors) {
    let Some(options) = field.options.as_deref() else { return };
    let at = field.at.kind;
    let options = &options.value;
    if pool[scope.file].edition >= Edition::E2024 && options.varint(option::CTYPE).is_some() {
        let message = "ctype is not allowed since edition 2024: use features.(pb.cpp).string_type";
        errors.push((at, message.to_owned()));
    }
    if options.flag(option::LAZY) || options.flag(option::UNVERIFIED_LAZY) {
        if field.kind != Some(FieldKind::Message) {
            errors.push((at, "lazy is for message fields".to_owned()));
        }
        if options.flag(option::UNVERIFIED_LAZY) && field.is_extension() {
            errors.push((at, "unverified_lazy is not for extensions".to_owned()));
        }
    }
    if options.flag(option::PACKED) && !field.is_packable() {
        errors.push((at, "packed is for repeated fields of numbers, booleans and enums".to_owned()));
    }
    let has_64_bits = matches!(
        field.kind,
        Some(
            FieldKind::Int64
                | FieldKind::Uint64
                | FieldKind::Sint64
                | FieldKind::Fixed64
                | FieldKind::Sfixed64
        )
    );
    if options.varint(option::JSTYPE).is_some_and(|jstype| jstype != 0) && !has_64_bits {
        errors.push((at, "jstype is for fields of 64-bit integers".to_owned()));
    }
}

/// Checks that a map's entry message is used only by the map itself.
fn check_map(linker: &Linker, scope: &mut Scope, field: &Field, entry: MessageId, errors: &mut FoundErrors) {
    let pool = &linker.pool;
    let at = field.at.kind;
    if field.kind == Some(FieldKind::Group) {
        let message = "a group cannot have the entries of a map: use map<KeyType, ValueType>";
        errors.push((at, message.to_owned()));
        return;
    }
    let declared = &pool[entry];
    let is_own = field.is_repeated()
        && *declared.name == *map_entry_name(&field.name)
        && field.message == declared.parent;
    if !is_own {
        let mut message = format!("\"{}\" is a map entry and cannot be used as a type", declared.full_name);
        let from = declared.parent.and_then(|parent| pool[pool[parent].node?].parent);
        if let Some(from) = from
            && let Ok(Symbol::Message(other)) = linker.lookup(scope, &declared.name, from, SymbolFilter::Type)
            && other != entry
        {
            let _ = write!(message, ": is it \".{}\"?", pool[other].full_name);
        }
        errors.push((at, message));
    }
    let [key, value] = declared.fields[..] else { return };
    match pool[key].kind {
        Some(FieldKind::Enum) => errors.push((at, "the key of a map cannot be an enum".to_owned())),
        Some(
            FieldKind::Float | FieldKind::Double | FieldKind::Message | FieldKind::Group | FieldKind::Bytes,
        ) => {
            errors.push((at, "the key of a map cannot be a float, double, bytes or message".to_owned()));
        }
        _ => {}
    }
    if let TypeRef::Enum(declared) = pool[value].type_ref
        && pool[declared].values.first().is_some_and(|first| first.number != 0)
    {
        errors.push((at, "the first value of an enum in a map must be 0".to_owned()));
    }
}

pub(super) fn check_reserved_range(pool: &Pool, owner: Owner, errors: &mut FoundErrors) {
    let Owner::Field(field) = owner else { return };
    let field = &pool[field];
    if RESERVED_NUMBERS.contains(&field.number) {
        let (first, last) = RESERVED_NUMBERS.into_inner();
        let message = format!("field numbers {first} to {last} are reserved for implementations of Protobuf");
        errors.push((field.at.number, message));
    }
}
