//! `google.api.HttpBody`: a non-JSON body and its content type.

use bytes::Bytes;
use thalweg_openapi::rules::is_http_body;
use thalweg_protobuf::Field;
use thalweg_protobuf::wire::{Reader, Tag, WireError, WireType, put_tag, put_varint, varint_len};

const CONTENT_TYPE: Tag = Tag::new(1, WireType::Len);
const DATA: Tag = Tag::new(2, WireType::Len);

/// Maximum nesting of groups in skipped fields.
const SKIP_DEPTH_MAX: usize = 100;

/// A body and its content type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// For example `application/json`; empty if unknown.
    pub content_type: String,
    /// The body.
    pub data: Bytes,
}

/// Returns whether the field is a `google.api.HttpBody`.
pub(super) fn is_http_body_field(field: Field<'_>) -> bool {
    !field.is_repeated() && field.message_type().is_some_and(is_http_body)
}

/// Appends the records of a `google.api.HttpBody`.
pub(super) fn put(content: &Content, wire: &mut Vec<u8>) {
    for (tag, value) in [(CONTENT_TYPE, content.content_type.as_bytes()), (DATA, &content.data)] {
        if !value.is_empty() {
            put_tag(wire, tag);
            put_varint(wire, value.len() as u64);
            wire.extend_from_slice(value);
        }
    }
}

/// Returns the number of bytes that [`put`] appends.
pub(super) fn len(content: &Content) -> usize {
    let of = |len: usize| if len == 0 { 0 } else { 1 + varint_len(len as u64) + len };
    of(content.content_type.len()) + of(content.data.len())
}

/// Reads a `google.api.HttpBody` without copying its data.
pub(super) fn read(wire: &Bytes) -> Result<Content, WireError> {
    let mut content = Content::default();
    let mut reader = Reader::new(wire);
    while !reader.is_empty() {
        let tag = reader.tag()?;
        match tag {
            CONTENT_TYPE => {
                content.content_type = String::from_utf8_lossy(reader.len_prefixed()?).into_owned();
            }
            DATA => content.data = wire.slice_ref(reader.len_prefixed()?),
            _ => reader.skip(tag, SKIP_DEPTH_MAX)?,
        }
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{Content, len, put, read};

    #[test]
    fn http_body_round_trips() {
        for (content_type, data) in [("", ""), ("text/plain", ""), ("", "a"), ("image/png", "\0\u{1}\u{2}")] {
            let content = Content { content_type: content_type.into(), data: data.into() };
            let mut wire = Vec::new();
            put(&content, &mut wire);
            assert_eq!(wire.len(), len(&content));
            assert_eq!(read(&wire.into()), Ok(content));
        }
    }

    #[test]
    fn data_is_not_copied_and_other_fields_are_skipped() {
        let wire = Bytes::from_static(b"\x1a\x01x\x12\x02ab\x0a\x01t\x12\x02cd");
        let content = read(&wire).unwrap();
        assert_eq!((&*content.content_type, &content.data[..]), ("t", &b"cd"[..]));
        assert_eq!(content.data.as_ptr(), wire[12..].as_ptr());
        for broken in [&b"\x12\x03ab"[..], b"\x12", b"\x0b"] {
            assert!(read(&Bytes::copy_from_slice(broken)).is_err());
        }
    }
}
