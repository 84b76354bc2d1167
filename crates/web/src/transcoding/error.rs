//! Failed calls: their HTTP status and body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use thalweg_engine::{Code, Status};
use thalweg_protobuf::Schema;
use thalweg_protobuf::json::{self, PrintOptions};

use crate::connect;
use crate::details::{self, Detail};

/// Returns the HTTP status of a code by [`google/rpc/code.proto`]. Connect's is the same for failures.
///
/// [`google/rpc/code.proto`]: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
pub fn http_status(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        code => connect::http_status(code),
    }
}

/// Returns the JSON of a `google.rpc.Status`: `{"code":5,"message":"no such book","details":[]}`.
///
/// Details whose type is in the schema are printed as a JSON Any. Others, and malformed ones, are
/// `{"@type":"type.googleapis.com/…","value":"base64"}`.
pub fn to_json(schema: &Schema, status: &Status, options: &PrintOptions) -> Vec<u8> {
    let mut json = format!("{{\"code\":{},\"message\":", status.code().number()).into_bytes();
    put_text(status.message(), &mut json);
    json.extend_from_slice(b",\"details\":[");
    let first = json.len();
    for Detail { type_url, value } in details::of_status(status.details()) {
        if json.len() > first {
            json.push(b',');
        }
        put_any(schema, &type_url, &value, options, &mut json);
    }
    json.extend_from_slice(b"]}");
    json
}

fn put_any(schema: &Schema, type_url: &str, value: &[u8], options: &PrintOptions, json: &mut Vec<u8>) {
    json.extend_from_slice(b"{\"@type\":");
    put_text(type_url, json);
    // Nested lines would have the wrong indentation.
    let options = options.clone().pretty(false);
    let message = type_url.rsplit_once('/').and_then(|(_, name)| schema.message(name));
    let start = json.len();
    let is_printed = match message {
        Some(message) if message.well_known().is_some() => {
            json.extend_from_slice(b",\"value\":");
            json::print(message, value, &options, json).is_ok()
        }
        Some(message) if json::print(message, value, &options, json).is_ok() => {
            // The members follow the type: the opening brace becomes a comma, unless the object is empty.
            if json[start..] == *b"{}" {
                json.truncate(start);
            } else {
                json[start] = b',';
                json.pop();
            }
            true
        }
        _ => false,
    };
    if !is_printed {
        json.truncate(start);
        json.extend_from_slice(format!(",\"value\":\"{}\"", STANDARD.encode(value)).as_bytes());
    }
    json.push(b'}');
}

/// Appends a JSON string.
fn put_text(text: &str, json: &mut Vec<u8>) {
    // Writing a string to memory does not fail.
    let _ = serde_json::to_writer(json, text);
}
