//! Fields that are written with the name of their type.

use thalweg_protobuf::{Field, Kind, MessageType};

/// Whether proto2 would have declared the field as a group: it is delimited, and its type is declared in the same
/// scope with the field's name except for case. In text it has the type's name.
pub(super) fn is_group(field: Field<'_>) -> bool {
    let Some(message) = field.message_type() else { return false };
    field.kind() == Kind::Group
        && !field.is_extension()
        && message.name().to_lowercase() == field.name()
        && message.parent() == Some(field.message())
}

/// Returns the group with this name.
pub(super) fn named<'s>(message: MessageType<'s>, name: &str) -> Option<Field<'s>> {
    let field = message.field(&name.to_lowercase())?;
    (is_group(field) && field.message_type().is_some_and(|group| group.name() == name)).then_some(field)
}
