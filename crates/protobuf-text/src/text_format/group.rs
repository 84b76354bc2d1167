//! Fields whose name in text is that of their type.

use thalweg_protobuf::{Field, Kind, MessageType};

/// Whether the field is one that proto2 would have declared as a group: delimited, with a type beside it whose name is
/// the field's but for capitals. Its name in text is that of the type.
pub(super) fn is_group(field: Field<'_>) -> bool {
    let Some(message) = field.message_type() else { return false };
    field.kind() == Kind::Group
        && !field.is_extension()
        && message.name().to_lowercase() == field.name()
        && message.parent() == Some(field.message())
}

/// The group of this name.
pub(super) fn named<'s>(message: MessageType<'s>, name: &str) -> Option<Field<'s>> {
    let field = message.field(&name.to_lowercase())?;
    (is_group(field) && field.message_type().is_some_and(|group| group.name() == name)).then_some(field)
}
