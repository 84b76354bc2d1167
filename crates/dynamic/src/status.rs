//! Status details, which may be messages of any type.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use thalweg::Status;
use thalweg::prost::{DecodeError, Message};
use thalweg_protobuf::Schema;
use thalweg_protobuf::json::{self, PrintOptions};

use crate::catalogue::Catalogue;

/// A status detail.
#[derive(Debug)]
pub struct Detail {
    type_url: String,
    value: Vec<u8>,
    /// `None` if the type has no descriptor.
    json: Option<String>,
}

/// Decodes status details. Types other than the standard ones come from the catalogue.
///
/// # Errors
///
/// Returns an error if the details are not a `google.rpc.Status`.
pub async fn details(status: &Status, catalogue: &mut Catalogue) -> Result<Vec<Detail>, DecodeError> {
    let mut details = Vec::new();
    for any in RpcStatus::decode(status.details())?.details {
        let name = type_name(&any.type_url);
        let schema = match standard_schema(name) {
            Some(schema) => Some(schema),
            None => catalogue.schema_of(name).await.ok().flatten(),
        };
        details.push(Detail::new(any, schema.as_ref()));
    }
    Ok(details)
}

/// Decodes status details as [`details`] does. Types other than the standard ones come from the schema.
///
/// # Errors
///
/// Returns an error if the details are not a `google.rpc.Status`.
pub fn details_by(status: &Status, schema: &Schema) -> Result<Vec<Detail>, DecodeError> {
    let details = RpcStatus::decode(status.details())?.details.into_iter();
    let detail = |any: Any| {
        let standard = standard_schema(type_name(&any.type_url));
        Detail::new(any, Some(standard.as_ref().unwrap_or(schema)))
    };
    Ok(details.map(detail).collect())
}

/// Returns a status as single-line JSON of `google.rpc.Status`. Details without descriptor have their bytes as `value`.
pub async fn status_json(status: &Status, catalogue: &mut Catalogue) -> String {
    let mut members = vec![format!("\"code\":{}", status.code() as i32)];
    if !status.message().is_empty() {
        members.push(format!("\"message\":{}", Value::from(status.message())));
    }
    let details = details(status, catalogue).await.unwrap_or_default();
    if !details.is_empty() {
        let texts: Vec<String> = details.iter().map(Detail::any).collect();
        members.push(format!("\"details\":[{}]", texts.join(",")));
    }
    format!("{{{}}}", members.join(","))
}

/// `google.rpc.Status` without the fields that trailers repeat.
#[derive(Clone, PartialEq, Message)]
#[prost(prost_path = "thalweg::prost")]
struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
#[prost(prost_path = "thalweg::prost")]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// Displays the type and the JSON.
impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = type_name(&self.type_url);
        match &self.json {
            Some(json) => write!(f, "{name} {json}"),
            None => write!(f, "{name} (no descriptor): {}", BASE64_STANDARD.encode(&self.value)),
        }
    }
}

impl Detail {
    fn new(Any { type_url, value }: Any, schema: Option<&Schema>) -> Self {
        let json = schema.and_then(|schema| message_json(schema, type_name(&type_url), &value));
        Self { type_url, value, json }
    }

    /// Returns ProtoJSON of an `Any`: an `@type` member, and JSON other than an object as `value`.
    fn any(&self) -> String {
        let type_url = Value::from(self.type_url.as_str());
        // Some types of `google.protobuf` have special JSON.
        let is_plain = !type_name(&self.type_url).starts_with("google.protobuf.");
        let inner =
            self.json.as_deref().filter(|_| is_plain).and_then(|it| it.strip_prefix('{')?.strip_suffix('}'));
        let members = match (inner, &self.json) {
            (Some(members), _) => members.to_owned(),
            (None, Some(json)) => format!("\"value\":{json}"),
            (None, None) => format!("\"value\":\"{}\"", BASE64_STANDARD.encode(&self.value)),
        };
        let comma = if members.is_empty() { "" } else { "," };
        format!("{{\"@type\":{type_url}{comma}{members}}}")
    }
}

fn type_name(type_url: &str) -> &str {
    type_url.rsplit('/').next().unwrap_or_default()
}

/// Returns the schema of gRPC's standard details, if it has this type.
fn standard_schema(name: &str) -> Option<Schema> {
    let schema = Schema::from_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET).ok();
    schema.filter(|schema| schema.message(name).is_some())
}

fn message_json(schema: &Schema, name: &str, wire: &[u8]) -> Option<String> {
    let options = PrintOptions::default().allow_partial(true);
    let mut text = Vec::new();
    json::print(schema.message(name)?, wire, &options, &mut text).ok()?;
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use thalweg::Code;

    use super::*;

    #[tokio::test]
    async fn details_are_encoded_as_protojson_of_any() {
        let any = |name: &str, value: &[u8]| Any {
            type_url: format!("type.googleapis.com/{name}"),
            value: value.to_vec(),
        };
        // A reason; two seconds; nothing; an undeclared type.
        let details = vec![
            any("google.rpc.ErrorInfo", b"\x0a\x01a"),
            any("google.protobuf.Duration", &[8, 2]),
            any("google.rpc.Help", &[]),
            any("a.B", &[255]),
        ];
        let encoded = RpcStatus { details }.encode_to_vec();
        let status = Status::with_details(Code::Aborted, "why", encoded.into());
        let set = tonic_types::pb::FILE_DESCRIPTOR_SET.to_vec();
        let schema = Schema::from_descriptor_set(&set).unwrap();
        let mut catalogue = Catalogue::Files { schema, set };
        assert_eq!(
            status_json(&status, &mut catalogue).await,
            "{\"code\":10,\"message\":\"why\",\"details\":[\
             {\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":\"a\"},\
             {\"@type\":\"type.googleapis.com/google.protobuf.Duration\",\"value\":\"2s\"},\
             {\"@type\":\"type.googleapis.com/google.rpc.Help\"},\
             {\"@type\":\"type.googleapis.com/a.B\",\"value\":\"/w==\"}]}"
        );
    }
}
