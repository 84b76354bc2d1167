//! Failed calls: their status of HTTP, and their body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use thalweg_engine::{Code, Status};
use thalweg_protobuf::Schema;
use thalweg_protobuf::json::{self, PrintOptions};
use thalweg_protobuf::wire::{Reader, Tag, WireError, WireType};

/// What a client closed before it was answered (nginx's number, which `code.proto` names).
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// Groups in one another, in fields that are not looked at.
const SKIP_DEPTH_MAX: usize = 100;

/// The status of HTTP for a code, as [`google/rpc/code.proto`] has it.
///
/// [`google/rpc/code.proto`]: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
pub fn http_status(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::Cancelled => {
            StatusCode::from_u16(CLIENT_CLOSED_REQUEST).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        }
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The JSON of a `google.rpc.Status`: `{"code":5,"message":"no such book","details":[]}`.
///
/// Each detail is an Any as JSON has it, if the schema has its type; of others it is
/// `{"@type":"type.googleapis.com/…","value":"base64"}`, and so of those that are no message of their type.
pub fn to_json(schema: &Schema, status: &Status, options: &PrintOptions) -> Vec<u8> {
    let mut json = format!("{{\"code\":{},\"message\":", status.code().number()).into_bytes();
    put_text(status.message(), &mut json);
    json.extend_from_slice(b",\"details\":[");
    let first = json.len();
    // Details that cannot be read are none.
    for (type_url, value) in details(status.details()).unwrap_or_default() {
        if json.len() > first {
            json.push(b',');
        }
        put_any(schema, &type_url, value, options, &mut json);
    }
    json.extend_from_slice(b"]}");
    json
}

/// The Anys in a `google.rpc.Status`, with their type URLs.
fn details(status: &[u8]) -> Result<Vec<(String, &[u8])>, WireError> {
    const DETAILS: Tag = Tag::new(3, WireType::Len);
    const TYPE_URL: Tag = Tag::new(1, WireType::Len);
    const VALUE: Tag = Tag::new(2, WireType::Len);
    let mut details = Vec::new();
    let mut reader = Reader::new(status);
    while !reader.is_empty() {
        let tag = reader.tag()?;
        if tag != DETAILS {
            reader.skip(tag, SKIP_DEPTH_MAX)?;
            continue;
        }
        let mut any = Reader::new(reader.len_prefixed()?);
        let (mut type_url, mut value) = (String::new(), &[][..]);
        while !any.is_empty() {
            match any.tag()? {
                TYPE_URL => type_url = String::from_utf8_lossy(any.len_prefixed()?).into_owned(),
                VALUE => value = any.len_prefixed()?,
                tag => any.skip(tag, SKIP_DEPTH_MAX)?,
            }
        }
        details.push((type_url, value));
    }
    Ok(details)
}

fn put_any(schema: &Schema, type_url: &str, value: &[u8], options: &PrintOptions, json: &mut Vec<u8>) {
    json.extend_from_slice(b"{\"@type\":");
    put_text(type_url, json);
    // Lines of their own would be indented for another place.
    let options = PrintOptions { pretty: false, ..options.clone() };
    let message = type_url.rsplit_once('/').and_then(|(_, name)| schema.message(name));
    let start = json.len();
    let is_printed = match message {
        Some(message) if message.well_known().is_some() => {
            json.extend_from_slice(b",\"value\":");
            json::print(message, value, &options, json).is_ok()
        }
        Some(message) if json::print(message, value, &options, json).is_ok() => {
            // The members of the object follow the type: its brace becomes a comma, if there are any.
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

/// In quotes.
fn put_text(text: &str, json: &mut Vec<u8>) {
    // Writing to memory does not fail, nor does a text.
    let _ = serde_json::to_writer(json, text);
}
