//! Converts a binding to an OpenAPI operation.

use thalweg_protobuf::{Field, WellKnown};

use super::call::Call;
use super::json::Object;
use super::parameters;
use super::path::Path;
use super::schemas::{self, Schemas};
use super::text;
use crate::options::Deprecated;
use crate::rules::{BodyMapping, FieldPath, is_http_body};

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";
const EVENTS: &str = "text/event-stream";
/// Content type of a `google.api.HttpBody`.
const ANY: &str = "*/*";

/// Describes the encoding of a stream and its errors.
const STREAM: &str = "Messages as they arrive: NDJSON, server-sent events or, for clients that accept only JSON, an \
                      array. If the call fails midway, the last line or element is `{\"error\": …}`, or the last \
                      event is named `error`. It holds a `google.rpc.Status`.";

/// Returns a binding as an operation, with the parameter names of `path`.
pub(super) fn of<'r>(call: &Call<'r>, path: &Path, schemas: &mut Schemas<'r>) -> Object {
    Operation { call, path }.object(schemas)
}

struct Operation<'o, 'r> {
    call: &'o Call<'r>,
    path: &'o Path,
}

impl<'r> Operation<'_, 'r> {
    fn object(&self, schemas: &mut Schemas<'r>) -> Object {
        let comment = self.call.info.comments.get(&dotted(self.call.binding.path())).unwrap_or_default();
        let (summary, description) = text::summary_and_description(comment);
        let mut description = description.unwrap_or_default();
        for note in self.notes() {
            text::add_paragraph(&mut description, &note);
        }
        let query = parameters::of_query(self.call, schemas);
        if query.is_truncated {
            text::add_paragraph(&mut description, "Has more parameters than are listed here.");
        }
        let parameters = [parameters::of_path(self.call, self.path, schemas), query.parameters].concat();
        Object::new()
            .with("tags", vec![self.call.method.service().full_name().to_owned()])
            .with_some("summary", summary)
            .with_some("description", (!description.is_empty()).then_some(description))
            .with("operationId", self.call.id.clone())
            .with_some("deprecated", self.is_deprecated().then_some(true))
            .with_some("parameters", (!parameters.is_empty()).then_some(parameters))
            .with_some("requestBody", self.request_body(schemas))
            .with("responses", self.responses(schemas))
            .with("x-grpc-method", self.call.binding.path().to_owned())
    }

    fn is_deprecated(&self) -> bool {
        self.call.method.is_deprecated() || self.call.method.service().is_deprecated()
    }

    /// Returns notes on facts that no other member of the operation expresses.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for variable in self.call.binding.template().variables().iter().filter(|variable| !variable.is_single)
        {
            let segments = self.path.text_of(variable);
            notes.push(format!("`{}` is `{segments}` of the path.", variable.field_path));
        }
        if self.call.binding.http_method().is_none() {
            notes.push("Accepts any HTTP method.".to_owned());
        }
        if self.call.binding.is_client_streaming() {
            notes.push("The client sends any number of messages, one per line.".to_owned());
        }
        if let Some(mask) =
            self.call.binding.update_mask().and_then(|mask| self.call.method.input().field_by_number(mask))
        {
            let name = self.call.info.name(mask);
            notes.push(format!("Without `{name}`, only the fields that are in the body are changed."));
        }
        notes
    }

    fn request_body(&self, schemas: &mut Schemas<'r>) -> Option<Object> {
        let input = self.call.method.input();
        let content_of = |media: Object| Object::new().with("content", media);
        let content_type = if self.call.binding.is_client_streaming() { NDJSON } else { JSON };
        // A POST needs a content type so that forms of other sites cannot send it. Without a body it would have none.
        let is_post = self.call.http_method() == Some("post");
        match self.call.binding.body() {
            BodyMapping::Absent if is_post => {
                let empty = Object::new().with("type", "object").with("maxProperties", 0);
                Some(content_of(media(content_type, empty)).with("required", true))
            }
            BodyMapping::Absent => None,
            BodyMapping::Whole if is_http_body(input) => {
                let body = content_of(Object::new().with(ANY, Object::new()));
                Some(body.with_some("required", is_post.then_some(true)))
            }
            BodyMapping::Whole => {
                let in_path: Vec<u32> =
                    self.call.binding.variables().iter().filter_map(top_level_field).collect();
                let schema = schemas.of_message_without(input, &in_path);
                // An empty body is an empty message.
                let has_fields =
                    input.well_known() != Some(WellKnown::Empty) && input.fields().len() > in_path.len();
                Some(content_of(media(content_type, schema)).with("required", is_post || has_fields))
            }
            BodyMapping::Field(number) => {
                let field = input.field_by_number(number)?;
                let is_any = !field.is_repeated() && field.message_type().is_some_and(is_http_body);
                let content = if is_any {
                    Object::new().with(ANY, Object::new())
                } else {
                    let is_patch = self.call.binding.update_mask().is_some();
                    let schema = match field.message_type() {
                        Some(message) if is_patch => schemas.of_partial(message),
                        _ => schemas.of_field(field),
                    };
                    media(content_type, schema)
                };
                let comment = self.call.info.comments.get(&field.full_name()).map(str::to_owned);
                let body = Object::new().with_some("description", comment);
                Some(body.with("content", content).with("required", true))
            }
        }
    }

    fn responses(&self, schemas: &mut Schemas<'r>) -> Object {
        let error = media(JSON, schemas.of_status());
        let error = Object::new().with("description", "The call failed.").with("content", error);
        Object::new().with("200", self.success(schemas)).with("default", error)
    }

    fn success(&self, schemas: &mut Schemas<'r>) -> Object {
        let output = self.call.method.output();
        let field = self.call.binding.response_body().and_then(|number| output.field_by_number(number));
        let is_any = match field {
            None => is_http_body(output),
            Some(field) => !field.is_repeated() && field.message_type().is_some_and(is_http_body),
        };
        let is_stream = self.call.binding.is_server_streaming();
        let content = if is_any {
            Object::new().with(ANY, Object::new())
        } else {
            let schema = match field {
                None => schemas.of_message(output),
                Some(field) => schemas.of_field(field),
            };
            if is_stream { streamed(&schema) } else { media(JSON, schema) }
        };
        let comment = self
            .call
            .info
            .comments
            .get(field.map_or(output.full_name().to_owned(), Field::full_name).as_str());
        // The comment of `Empty` describes the type, not the response.
        let comment = comment.filter(|_| output.full_name() != "google.protobuf.Empty");
        let what = comment.and_then(|comment| text::summary_and_description(comment).0);
        let mut description = what.unwrap_or_else(|| "The call succeeded.".to_owned());
        if is_stream && !is_any {
            text::add_paragraph(&mut description, STREAM);
        }
        Object::new().with("description", description).with("content", content)
    }
}

fn media(content_type: &'static str, schema: Object) -> Object {
    Object::new().with(content_type, Object::new().with("schema", schema))
}

/// The schema of NDJSON describes a line, that of events their data.
fn streamed(schema: &Object) -> Object {
    let of = |schema: Object| Object::new().with("schema", schema);
    Object::new()
        .with(NDJSON, of(schema.clone()))
        .with(EVENTS, of(schema.clone()))
        .with(JSON, of(schemas::list_of(schema.clone())))
}

/// Returns the number of a top-level field in the path.
fn top_level_field(path: &FieldPath) -> Option<u32> {
    match path.numbers() {
        [number] => Some(*number),
        _ => None,
    }
}

/// Converts `/package.Service/Method` to a full name.
fn dotted(path: &str) -> String {
    path.trim_start_matches('/').replace('/', ".")
}
