//! Conversion of HTTP requests to wire bytes of method requests.

mod error;
mod nested;
mod options;
mod query;
mod value;

use thalweg_openapi::rules::{Binding, BodyMapping, FieldPath, Rules, is_http_body};
use thalweg_protobuf::json;
use thalweg_protobuf::{Field, MessageType};

use super::http_body::{self, Content};
use super::percent::PercentError;
use super::router::Route;
pub use error::RequestError;
pub use options::RequestOptions;
use query::Query;

/// Appends the wire bytes of a request, from its body, `query` and path.
///
/// `query` is the raw part after the `?`, empty if there is none. The content type of a JSON body is not checked here.
///
/// # Errors
///
/// See [`RequestError`]. `wire` is then unchanged.
///
/// # Panics
///
/// If the route is from other rules, whose type is not in this schema.
pub fn to_wire(
    rules: &Rules,
    route: &Route<'_, '_>,
    query: &str,
    body: &Content,
    options: &RequestOptions,
    wire: &mut Vec<u8>,
) -> Result<(), RequestError> {
    let start = wire.len();
    let request = Request { route, message: rules.input(route.binding()), options };
    let put = request.put(query, body, wire);
    put.inspect_err(|_| wire.truncate(start))
}

/// Appends the wire bytes of a later message of a stream, from its body only. Path and query belong to the first
/// message.
///
/// # Errors
///
/// See [`RequestError`]. `wire` is then unchanged.
///
/// # Panics
///
/// If the binding is from other rules, whose type is not in this schema.
pub fn later_to_wire(
    rules: &Rules,
    binding: &Binding,
    body: &Content,
    options: &RequestOptions,
    wire: &mut Vec<u8>,
) -> Result<(), RequestError> {
    let start = wire.len();
    let put = RequestBody { binding, message: rules.input(binding), options }.put(body, wire);
    put.inspect_err(|_| wire.truncate(start))
}

/// Returns whether request bodies are raw, as a `google.api.HttpBody`.
///
/// # Panics
///
/// See [`later_to_wire`].
pub fn is_raw(rules: &Rules, binding: &Binding) -> bool {
    let message = rules.input(binding);
    match binding.body() {
        BodyMapping::Absent => false,
        BodyMapping::Whole => is_http_body(message),
        BodyMapping::Field(number) => {
            message.field_by_number(number).is_some_and(http_body::is_http_body_field)
        }
    }
}

struct Request<'s, 'r> {
    route: &'r Route<'r, 'r>,
    message: MessageType<'s>,
    options: &'r RequestOptions,
}

impl Request<'_, '_> {
    fn put(&self, query: &str, body: &Content, wire: &mut Vec<u8>) -> Result<(), RequestError> {
        let request_body =
            RequestBody { binding: self.route.binding(), message: self.message, options: self.options };
        request_body.put(body, wire)?;
        let is_mask_given = !query.is_empty()
            && Query::new(self.message, self.route.binding(), self.options).put(query, wire)?;
        if !is_mask_given {
            self.put_mask(body, wire)?;
        }
        for (variable, path, text) in self.route.variables() {
            let error =
                |problem| RequestError::Variable { variable: variable.field_path.to_string(), problem };
            let text = text.map_err(|problem: PercentError| error(problem.to_string()))?;
            self.put_variable(path, &text, wire).map_err(error)?;
        }
        Ok(())
    }

    /// Appends an update mask with the fields of the body.
    fn put_mask(&self, body: &Content, wire: &mut Vec<u8>) -> Result<(), RequestError> {
        let binding = self.route.binding();
        let (Some(mask), BodyMapping::Field(number)) = (binding.update_mask(), binding.body()) else {
            return Ok(());
        };
        let field_of = |number| self.message.field_by_number(number);
        let (Some(mask), Some(field)) = (field_of(mask), field_of(number)) else { return Ok(()) };
        let (Some(message), false) = (field.message_type(), body.data.trim_ascii().is_empty()) else {
            return Ok(());
        };
        // A null field has no fields; the body was already validated.
        if body.data.trim_ascii() == b"null" {
            return Ok(());
        }
        let paths = json::field_paths(message, &body.data, &self.options.parse)?;
        let Some(path_field) = mask.message_type().and_then(|mask| mask.field_by_number(1)) else {
            return Ok(());
        };
        let len = paths.iter().map(|path| nested::nested_len(&[path_field], path.len())).sum();
        nested::put_nested(&[mask], len, wire, |wire| {
            for path in &paths {
                nested::put_nested(&[path_field], path.len(), wire, |wire| {
                    wire.extend_from_slice(path.as_bytes());
                });
            }
        });
        Ok(())
    }

    /// Errors do not include the name.
    fn put_variable(&self, path: &FieldPath, text: &str, wire: &mut Vec<u8>) -> Result<(), String> {
        value::put(&nested::fields_of(self.message, path), text, &self.options.parse, wire)
    }
}

/// Part of a message that comes from the body.
struct RequestBody<'s, 'r> {
    binding: &'r Binding,
    message: MessageType<'s>,
    options: &'r RequestOptions,
}

impl RequestBody<'_, '_> {
    fn put(&self, body: &Content, wire: &mut Vec<u8>) -> Result<(), RequestError> {
        let is_blank = body.data.trim_ascii().is_empty();
        match self.binding.body() {
            BodyMapping::Absent if is_blank || self.options.parse.ignore_unknown => Ok(()),
            // Many clients send this instead of an empty body.
            BodyMapping::Absent if *body.data.trim_ascii() == *b"{}" => Ok(()),
            BodyMapping::Absent => Err(RequestError::UnexpectedBody),
            BodyMapping::Whole if is_http_body(self.message) => {
                http_body::put(body, wire);
                Ok(())
            }
            BodyMapping::Whole if is_blank => Ok(()),
            BodyMapping::Whole => {
                // Required fields may be in the path.
                let allow_partial = self.options.parse.allow_partial || !self.binding.variables().is_empty();
                let options = self.options.parse.clone().allow_partial(allow_partial);
                Ok(json::parse(self.message, &body.data, &options, wire)?)
            }
            BodyMapping::Field(number) => match self.message.field_by_number(number) {
                Some(field) => self.put_field(field, body, is_blank, wire),
                // The rules have checked that it exists.
                None => Ok(()),
            },
        }
    }

    fn put_field(
        &self,
        field: Field<'_>,
        body: &Content,
        is_blank: bool,
        wire: &mut Vec<u8>,
    ) -> Result<(), RequestError> {
        if http_body::is_http_body_field(field) {
            nested::put_nested(&[field], http_body::len(body), wire, |wire| http_body::put(body, wire));
        } else if !is_blank {
            json::parse_field(field, &body.data, &self.options.parse, wire)?;
        }
        Ok(())
    }
}
