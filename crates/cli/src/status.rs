//! How a call ended, when it did not end well.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use thalweg::prost::Message as _;
use thalweg::{Code, Status};
use thalweg_dynamic::Catalogue;
use thalweg_measure::code::code_name;
use thalweg_protobuf::json::{self, PrintOptions};
use thalweg_protobuf::{Schema, printable};

/// Added to the code of a status, so that no other failure has the same exit code.
const EXIT_CODE_BASE: u8 = 64;

/// The exit code of a command whose call ended so.
pub(crate) fn exit_code(code: Code) -> u8 {
    match code {
        Code::Ok => 0,
        code => EXIT_CODE_BASE + code as u8,
    }
}

/// A line for the status, and one for each of its details, as JSON.
pub(crate) async fn described(status: &Status, catalogue: &mut Catalogue) -> String {
    let code = status.code();
    let mut text = format!("{} ({})", code_name(code as i32), code as i32);
    if !status.message().is_empty() {
        text.push_str(": ");
        text.push_str(&printable::line(status.message()));
    }
    let Ok(details) = details(status.details()) else {
        let bytes = BASE64_STANDARD.encode(status.details());
        return format!("{text}\n  details (not a google.rpc.Status): {bytes}");
    };
    for detail in details {
        text.push_str("\n  detail: ");
        text.push_str(&detail.described(catalogue).await);
    }
    text
}

/// The JSON of a `google.rpc.Status`, on one line. Details of which there is no descriptor have their bytes, `value`.
pub(super) async fn json(status: &Status, catalogue: &mut Catalogue) -> String {
    let mut members = vec![format!("\"code\":{}", status.code() as i32)];
    if !status.message().is_empty() {
        members.push(format!("\"message\":{}", Value::from(status.message())));
    }
    let mut texts = Vec::new();
    for detail in details(status.details()).unwrap_or_default() {
        texts.push(detail.any(catalogue).await);
    }
    if !texts.is_empty() {
        members.push(format!("\"details\":[{}]", texts.join(",")));
    }
    format!("{{{}}}", members.join(","))
}

/// `google.rpc.Status`, but for what its trailers say, too.
#[derive(Clone, PartialEq, thalweg::prost::Message)]
#[prost(prost_path = "thalweg::prost")]
struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, thalweg::prost::Message)]
#[prost(prost_path = "thalweg::prost")]
struct Detail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

fn details(encoded: &[u8]) -> Result<Vec<Detail>, thalweg::prost::DecodeError> {
    Ok(RpcStatus::decode(encoded)?.details)
}

impl Detail {
    /// Its type and its JSON.
    async fn described(&self, catalogue: &mut Catalogue) -> String {
        let name = printable::line(self.name());
        match self.known(catalogue).await {
            Some(json) => format!("{name} {json}"),
            None => {
                format!("{name} (no descriptor): {}", BASE64_STANDARD.encode(&self.value))
            }
        }
    }

    /// As ProtoJSON has an `Any`: the type stands among the members, and what is no object is a member, too.
    async fn any(&self, catalogue: &mut Catalogue) -> String {
        let type_url = Value::from(self.type_url.as_str());
        // Of `google.protobuf` there are types whose JSON is of a form of their own.
        let is_plain = !self.name().starts_with("google.protobuf.");
        let json = self.known(catalogue).await;
        let inside =
            json.as_deref().filter(|_| is_plain).and_then(|it| it.strip_prefix('{')?.strip_suffix('}'));
        let members = match (inside, &json) {
            (Some(members), _) => members.to_owned(),
            (None, Some(json)) => format!("\"value\":{json}"),
            (None, None) => format!("\"value\":\"{}\"", BASE64_STANDARD.encode(&self.value)),
        };
        let comma = if members.is_empty() { "" } else { "," };
        format!("{{\"@type\":{type_url}{comma}{members}}}")
    }

    fn name(&self) -> &str {
        self.type_url.rsplit('/').next().unwrap_or_default()
    }

    /// Its JSON: by the schema of gRPC's usual details, or by the catalogue's.
    async fn known(&self, catalogue: &mut Catalogue) -> Option<String> {
        let name = self.name();
        let usual = Schema::from_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET).ok();
        let schema = match usual.filter(|schema| schema.message(name).is_some()) {
            Some(schema) => schema,
            None => catalogue.schema_of(name).await.ok().flatten()?,
        };
        self.json(&schema, name)
    }

    fn json(&self, schema: &Schema, name: &str) -> Option<String> {
        let options = PrintOptions { allow_partial: true, ..PrintOptions::default() };
        let mut text = Vec::new();
        json::print(schema.message(name)?, &self.value, &options, &mut text).ok()?;
        String::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_specifications_names() {
        for (code, expected) in [
            (Code::Ok, "OK"),
            (Code::Cancelled, "CANCELLED"),
            (Code::InvalidArgument, "INVALID_ARGUMENT"),
            (Code::Unauthenticated, "UNAUTHENTICATED"),
        ] {
            assert_eq!(code_name(code as i32), expected);
        }
        assert_eq!((exit_code(Code::Ok), exit_code(Code::Cancelled), exit_code(Code::Internal)), (0, 65, 77));
    }

    #[test]
    fn details_are_as_protojson_has_an_any() {
        let detail = |name: &str, value: &[u8]| Detail {
            type_url: format!("type.googleapis.com/{name}"),
            value: value.to_vec(),
        };
        // A reason; two seconds; nothing; a type that nobody declares.
        let details = vec![
            detail("google.rpc.ErrorInfo", b"\x0a\x01a"),
            detail("google.protobuf.Duration", &[8, 2]),
            detail("google.rpc.Help", &[]),
            detail("a.B", &[255]),
        ];
        let encoded = RpcStatus { details }.encode_to_vec();
        let status = Status::with_details(Code::Aborted, "why", encoded.into());
        let set = tonic_types::pb::FILE_DESCRIPTOR_SET.to_vec();
        let schema = Schema::from_descriptor_set(&set).unwrap();
        let mut catalogue = Catalogue::Files { schema, set };
        let text = crate::runtime::runtime(1).unwrap().block_on(json(&status, &mut catalogue));
        assert_eq!(
            text,
            "{\"code\":10,\"message\":\"why\",\"details\":[\
             {\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":\"a\"},\
             {\"@type\":\"type.googleapis.com/google.protobuf.Duration\",\"value\":\"2s\"},\
             {\"@type\":\"type.googleapis.com/google.rpc.Help\"},\
             {\"@type\":\"type.googleapis.com/a.B\",\"value\":\"/w==\"}]}"
        );
    }
}
