//! Checks of field features in editions.

use super::found_errors::FoundErrors;
use crate::sources::features::{Features, number, value};
use crate::sources::ids::FieldId;
use crate::sources::pool::{FieldKind, Label, Pool, TypeRef};

pub(super) fn check(pool: &Pool, field: FieldId, errors: &mut FoundErrors) {
    let field = &pool[field];
    if pool[field.file].edition.is_legacy() {
        return;
    }
    let mut fail = |message: &str| errors.push((field.at.name, message.to_owned()));
    let options = field.options.as_deref();
    if options.is_some_and(|options| options.value.varint(2).is_some()) {
        fail("editions have no option packed: use features.repeated_field_encoding");
    }
    let is_message = field.is_message();
    let has_presence =
        is_message || field.is_extension() || field.oneof.is_some() || !field.features.is_implicit();
    if !field.is_repeated() && !has_presence {
        if field.default.is_some() {
            fail("a field with implicit presence has no default value");
        }
        if matches!(field.type_ref, TypeRef::Enum(declared) if pool[declared].features.is_closed()) {
            fail("an enum with implicit presence must be open");
        }
    }
    if field.is_extension() && field.features.is_required() {
        fail("an extension cannot be required");
    }
    if field.message.is_some_and(|message| pool[message].is_map_entry) {
        // It inherits the features of the map, which is checked itself.
        return;
    }
    let explicit = options.map_or(Features::default(), |options| options.explicit);
    let is_map = matches!(field.type_ref, TypeRef::Message(message) if pool[message].is_map_entry);
    if explicit.has(number::FIELD_PRESENCE) {
        let presence = explicit.get(number::FIELD_PRESENCE);
        if field.oneof.is_some() && !field.is_extension() {
            fail("a field of a oneof has presence: remove field_presence");
        } else if field.label == Label::Repeated {
            fail("a repeated field has no presence: remove field_presence");
        } else if field.is_extension() && presence != value::LEGACY_REQUIRED {
            fail("an extension has presence: remove field_presence");
        } else if is_message && presence == value::IMPLICIT {
            fail("a message field cannot have implicit presence");
        }
    }
    if explicit.has(number::REPEATED_FIELD_ENCODING) {
        if !field.is_repeated() {
            fail("repeated_field_encoding is for repeated fields");
        }
        if explicit.is_packed() && !field.is_packable() {
            fail("only repeated fields of numbers, booleans and enums can be packed");
        }
    }
    let is_string_map = match field.type_ref {
        TypeRef::Message(entry) if is_map => {
            pool[entry].fields.iter().any(|&field| pool[field].kind == Some(FieldKind::String))
        }
        _ => false,
    };
    if explicit.has(number::UTF8_VALIDATION) && field.kind != Some(FieldKind::String) && !is_string_map {
        fail("utf8_validation is for string fields");
    }
    if explicit.has(number::MESSAGE_ENCODING) && (!is_message || is_map) {
        fail("message_encoding is for message fields");
    }
}
