//! How a call ended, when it did not end well.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use thalweg::prost::Message as _;
use thalweg::{Code, Status};
use thalweg_dynamic::Catalogue;
use thalweg_lab::record::code_name;
use thalweg_protobuf::Schema;
use thalweg_protobuf::json::{self, PrintOptions};

/// Added to the code of a status, so that no other failure has the same exit code.
const EXIT_CODE_BASE: u8 = 64;

/// The exit code of a command whose call ended so.
pub(super) fn exit_code(code: Code) -> u8 {
    match code {
        Code::Ok => 0,
        code => EXIT_CODE_BASE + code as u8,
    }
}

/// A line for the status, and one for each of its details, as JSON.
pub(super) async fn described(status: &Status, catalogue: &mut Catalogue) -> String {
    let code = status.code();
    let mut text = format!("{} ({})", code_name(code as i32), code as i32);
    if !status.message().is_empty() {
        text.push_str(": ");
        text.push_str(status.message());
    }
    let Ok(details) = details(status.details()) else {
        let bytes = BASE64_STANDARD.encode(status.details());
        return format!("{text}\n  details that are no google.rpc.Status: {bytes}");
    };
    for detail in details {
        text.push_str("\n  detail: ");
        text.push_str(&detail.described(catalogue).await);
    }
    text
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
    /// Its type and its JSON: by the schema of gRPC's usual details, or by the catalogue's.
    async fn described(&self, catalogue: &mut Catalogue) -> String {
        let name = self.type_url.rsplit('/').next().unwrap_or_default();
        let usual = Schema::from_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET).ok();
        let schema = match usual.filter(|schema| schema.message(name).is_some()) {
            Some(schema) => Some(schema),
            None => catalogue.schema_of(name).await.ok().flatten(),
        };
        let json = schema.as_ref().and_then(|schema| self.json(schema, name));
        match json {
            Some(json) => format!("{name} {json}"),
            None => {
                format!("{name}, of which there is no descriptor: {}", BASE64_STANDARD.encode(&self.value))
            }
        }
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
}
