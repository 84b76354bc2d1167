//! Conversion of wire bytes of method responses to HTTP bodies.

use bytes::Bytes;
use thalweg_openapi::rules::{Binding, Rules, is_http_body};
use thalweg_protobuf::json::{self, PrintError, PrintOptions};
use thalweg_protobuf::wire::Reader;
use thalweg_protobuf::{DecodeError, Field, MessageType};

use super::http_body::{self, Content};

/// The content type of JSON.
pub const JSON: &str = "application/json";

/// Content type of a `google.api.HttpBody` that does not specify one.
pub(crate) const UNKNOWN: &str = "application/octet-stream";

/// Returns the body and the content type of a response: JSON by `options`, or the contents of a `google.api.HttpBody`
/// without a copy. The handler sets the content type of an `HttpBody`, which may be an invalid header value.
///
/// # Errors
///
/// See [`PrintError`].
///
/// # Panics
///
/// If the binding is from other rules, whose type is not in this schema.
pub fn from_wire(
    rules: &Rules,
    binding: &Binding,
    wire: &Bytes,
    options: &PrintOptions,
) -> Result<Content, PrintError> {
    match body_of(rules, binding) {
        ResponseBody::Raw(None) => raw(wire),
        ResponseBody::Raw(Some(field)) => raw(&content_of(field, wire)?),
        ResponseBody::Json(body) => {
            let mut json = Vec::with_capacity(wire.len() * 2 + 16);
            body.print(wire, options, &mut json)?;
            Ok(Content { content_type: JSON.to_owned(), data: json.into() })
        }
    }
}

/// Appends the JSON of a response, even if its [body is raw](is_raw).
///
/// # Errors
///
/// See [`PrintError`]. `json` is then unchanged.
///
/// # Panics
///
/// See [`from_wire`].
pub fn print(
    rules: &Rules,
    binding: &Binding,
    wire: &[u8],
    options: &PrintOptions,
    json: &mut Vec<u8>,
) -> Result<(), PrintError> {
    JsonBody::of(rules, binding).print(wire, options, json)
}

/// Returns whether response bodies are raw, from a `google.api.HttpBody`.
///
/// # Panics
///
/// See [`from_wire`].
pub fn is_raw(rules: &Rules, binding: &Binding) -> bool {
    matches!(body_of(rules, binding), ResponseBody::Raw(_))
}

/// Source of a response body.
enum ResponseBody<'s> {
    /// The contents of a `google.api.HttpBody`: the message, or this field of it.
    Raw(Option<Field<'s>>),
    Json(JsonBody<'s>),
}

enum JsonBody<'s> {
    Message(MessageType<'s>),
    Field(Field<'s>),
}

fn body_of<'s>(rules: &'s Rules, binding: &Binding) -> ResponseBody<'s> {
    match JsonBody::of(rules, binding) {
        JsonBody::Message(message) if is_http_body(message) => ResponseBody::Raw(None),
        JsonBody::Field(field) if http_body::is_http_body_field(field) => ResponseBody::Raw(Some(field)),
        body => ResponseBody::Json(body),
    }
}

impl<'s> JsonBody<'s> {
    fn of(rules: &'s Rules, binding: &Binding) -> JsonBody<'s> {
        let message = rules.output(binding);
        let field = binding.response_body().and_then(|number| message.field_by_number(number));
        field.map_or(JsonBody::Message(message), JsonBody::Field)
    }

    fn print(&self, wire: &[u8], options: &PrintOptions, json: &mut Vec<u8>) -> Result<(), PrintError> {
        match self {
            JsonBody::Message(message) => json::print(*message, wire, options, json),
            JsonBody::Field(field) => json::print_field(*field, wire, options, json),
        }
    }
}

fn raw(wire: &Bytes) -> Result<Content, PrintError> {
    let mut content = http_body::read(wire).map_err(DecodeError::from)?;
    if content.content_type.is_empty() {
        content.content_type.push_str(UNKNOWN);
    }
    Ok(content)
}

/// Returns the records of a message field; several occurrences are joined.
fn content_of(field: Field<'_>, wire: &Bytes) -> Result<Bytes, PrintError> {
    const SKIP_DEPTH_MAX: usize = 100;
    let mut content = Bytes::new();
    let mut reader = Reader::new(wire);
    while !reader.is_empty() {
        let tag = reader.tag().map_err(DecodeError::from)?;
        let mut value = reader;
        reader.skip(tag, SKIP_DEPTH_MAX).map_err(DecodeError::from)?;
        if tag.number == field.number()
            && let Ok(part) = value.len_prefixed()
        {
            content =
                if content.is_empty() { wire.slice_ref(part) } else { [&content, part].concat().into() };
        }
    }
    Ok(content)
}
