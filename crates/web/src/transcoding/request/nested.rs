//! Nested records.

use thalweg_openapi::rules::FieldPath;
use thalweg_protobuf::wire::{Tag, WireType, put_tag, put_varint, varint_len};
use thalweg_protobuf::{Field, Kind, MessageType};

/// Returns the fields on a path, outermost first.
pub(super) fn fields_of<'s>(message: MessageType<'s>, path: &FieldPath) -> Vec<Field<'s>> {
    let mut fields = Vec::with_capacity(path.numbers().len());
    let mut message = Some(message);
    for &number in path.numbers() {
        // The rules have checked that they exist.
        let Some(field) = message.and_then(|message| message.field_by_number(number)) else { break };
        message = field.message_type();
        fields.push(field);
    }
    fields
}

/// Appends the `len` bytes that `put` writes as the content of the last of the nested `fields`. Their values are
/// messages, strings or bytes.
pub(super) fn put_nested(
    fields: &[Field<'_>],
    len: usize,
    wire: &mut Vec<u8>,
    put: impl FnOnce(&mut Vec<u8>),
) {
    let mut len = len;
    // Innermost first, because each length includes the inner ones.
    let lens: Vec<usize> = fields
        .iter()
        .rev()
        .map(|field| {
            let content = len;
            len = nested_len(std::slice::from_ref(field), content);
            content
        })
        .collect();
    for (field, len) in fields.iter().zip(lens.iter().rev()) {
        put_tag(wire, start_tag(*field));
        if field.kind() != Kind::Group {
            put_varint(wire, *len as u64);
        }
    }
    put(wire);
    for field in fields.iter().rev().filter(|field| field.kind() == Kind::Group) {
        put_tag(wire, Tag::new(field.number(), WireType::EndGroup));
    }
}

/// Returns the number of bytes that [`put_nested`] appends for `len` bytes of content.
pub(super) fn nested_len(fields: &[Field<'_>], len: usize) -> usize {
    fields.iter().rev().fold(len, |len, field| {
        let tag_len = varint_len(start_tag(*field).bits().into());
        len + match field.kind() {
            Kind::Group => 2 * tag_len,
            _ => tag_len + varint_len(len as u64),
        }
    })
}

fn start_tag(field: Field<'_>) -> Tag {
    Tag::new(field.number(), if field.kind() == Kind::Group { WireType::StartGroup } else { WireType::Len })
}
