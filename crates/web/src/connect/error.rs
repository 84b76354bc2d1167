//! Errors and ends of streams as JSON.

use std::fmt;

use base64::Engine;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::{Map, Value};
use thalweg_core::metadata::MetadataMap;
use thalweg_engine::{Code, Status};

use super::code::{code_from_name, code_name};
use crate::base64::UNPADDED;
use crate::details::{self, Detail};
use crate::fields;

/// Converts a detail to JSON, given the name of its type and its bytes.
pub type ToJson = dyn Fn(&str, &[u8]) -> Option<Value> + Send + Sync;

/// Adds a readable form (`debug`) to error details, if their schema is known. None by default.
#[derive(Clone, Copy, Default)]
pub struct DetailJson<'a>(pub Option<&'a ToJson>);

impl fmt::Debug for DetailJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DetailJson").field(&self.0.is_some()).finish()
    }
}

#[derive(Serialize)]
struct ErrorJson<'a> {
    code: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<JsonDetail>,
}

#[derive(Serialize)]
struct JsonDetail {
    #[serde(rename = "type")]
    type_name: String,
    value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    debug: Option<Value>,
}

#[derive(Serialize)]
struct EndJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorJson<'a>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
}

/// Encodes the body of a failed unary call.
pub(super) fn write(status: &Status, debug: DetailJson<'_>) -> Vec<u8> {
    to_vec(&error_json(status, debug))
}

/// Encodes the end of a stream: the trailing metadata, or the status with its metadata.
pub(super) fn write_end(outcome: Result<&HeaderMap, &Status>, debug: DetailJson<'_>) -> Vec<u8> {
    // Too much metadata fails the call, as in gRPC.
    let (error, metadata) = match outcome {
        Ok(trailers) => (None, metadata_json(trailers)),
        Err(status) => (Some(status), metadata_json(status.metadata().as_ref())),
    };
    match (error, metadata) {
        (None, Err(too_large)) => write_end(Err(&too_large), debug),
        (error, metadata) => to_vec(&EndJson {
            error: error.map(|status| error_json(status, debug)),
            metadata: metadata.unwrap_or_default(),
        }),
    }
}

fn error_json<'a>(status: &'a Status, debug: DetailJson<'_>) -> ErrorJson<'a> {
    let json = |detail: Detail<'_>| JsonDetail {
        debug: debug.0.and_then(|json| json(detail.type_name(), &detail.value)),
        value: UNPADDED.encode(&detail.value),
        type_name: detail.type_name().to_owned(),
    };
    ErrorJson {
        code: code_name(status.code()),
        message: status.message(),
        details: details::of_status(status.details()).into_iter().map(json).collect(),
    }
}

fn metadata_json(metadata: &HeaderMap) -> Result<Map<String, Value>, Status> {
    let mut sent = HeaderMap::new();
    fields::append(metadata, "", &mut sent)?;
    let text = |value: &HeaderValue| Value::from(String::from_utf8_lossy(value.as_bytes()));
    let values = |name: &HeaderName| sent.get_all(name).iter().map(text).collect::<Vec<Value>>();
    Ok(sent.keys().map(|name| (name.as_str().to_owned(), values(name).into())).collect())
}

fn to_vec(json: &impl Serialize) -> Vec<u8> {
    // Strings and maps of strings always have a JSON form.
    serde_json::to_vec(json).unwrap_or_default()
}

/// Reads the status in a response body and adds `metadata`. A missing or unknown code becomes `code_otherwise`.
///
/// Returns `None` if the body is not a JSON object.
pub(super) fn read(body: &[u8], code_otherwise: Code, metadata: HeaderMap) -> Option<Status> {
    let error: Value = serde_json::from_slice(body).ok()?;
    Some(read_error(error.as_object()?, code_otherwise, metadata))
}

/// Reads the end of a stream: the trailing metadata, or the status.
///
/// # Errors
/// INTERNAL if it is malformed.
pub(super) fn read_end(payload: &[u8]) -> Result<HeaderMap, Status> {
    let malformed =
        |why: &dyn fmt::Display| Status::new(Code::Internal, format!("malformed end of the stream: {why}"));
    let end: Value = serde_json::from_slice(payload).map_err(|error| malformed(&error))?;
    let end = end.as_object().ok_or_else(|| malformed(&"expected an object"))?;
    let metadata = fields::received(&read_metadata(end.get("metadata")))?;
    match end.get("error") {
        None | Some(Value::Null) => Ok(metadata),
        Some(Value::Object(error)) => Err(read_error(error, Code::Unknown, metadata)),
        Some(_) => Err(malformed(&"expected an object in `error`")),
    }
}

fn read_error(error: &Map<String, Value>, code_otherwise: Code, metadata: HeaderMap) -> Status {
    let code = error.get("code").and_then(Value::as_str).and_then(code_from_name).unwrap_or(code_otherwise);
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
    let details = error.get("details").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let details: Vec<Detail<'_>> = details.iter().filter_map(read_detail).collect();
    let details = details::to_status(code, message, &details).into();
    Status::with_details_and_metadata(code, message, details, MetadataMap::from_headers(metadata))
}

/// Reads a detail. Unreadable details are dropped: the others are still useful.
fn read_detail(detail: &Value) -> Option<Detail<'static>> {
    let value = UNPADDED.decode(detail.get("value")?.as_str()?).ok()?;
    let type_name = detail.get("type")?.as_str()?;
    Some(Detail::new(type_name.rsplit('/').next()?, value))
}

/// Reads metadata; names and values that are invalid in headers are dropped.
fn read_metadata(metadata: Option<&Value>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, values) in metadata.and_then(Value::as_object).into_iter().flatten() {
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { continue };
        let values = values.as_array().map_or(std::slice::from_ref(values), Vec::as_slice);
        for value in values.iter().filter_map(Value::as_str) {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                let _ = headers.try_append(&name, value);
            }
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Seeded, failure, header_lines, headers};

    fn status(
        code: Code,
        message: &'static str,
        details: &[(&str, &[u8])],
        metadata: &[(&str, &str)],
    ) -> Status {
        let details: Vec<Detail<'_>> =
            details.iter().map(|(name, value)| Detail::new(name, value.to_vec())).collect();
        let details = details::to_status(code, message, &details).into();
        Status::with_details(code, message, details).prepend_metadata(&headers(metadata))
    }

    #[test]
    fn error_json_is_written() {
        let check = |status: &Status, debug, expected: &str| {
            assert_eq!(String::from_utf8(write(status, debug)).unwrap(), expected);
            let read = read(expected.as_bytes(), Code::Unknown, HeaderMap::new()).unwrap();
            assert_eq!((read.message(), read.details()), (status.message(), status.details()));
        };
        let plain = DetailJson::default();
        check(&Status::new(Code::Unavailable, ""), plain, r#"{"code":"unavailable"}"#);
        check(
            &Status::new(Code::NotFound, "no \"x\"\n"),
            plain,
            r#"{"code":"not_found","message":"no \"x\"\n"}"#,
        );
        let retry = status(Code::Aborted, "later", &[("google.rpc.RetryInfo", b"\x0a\x02\x08\x3c")], &[]);
        let expected = concat!(
            r#"{"code":"aborted","message":"later","#,
            r#""details":[{"type":"google.rpc.RetryInfo","value":"CgIIPA"}]}"#
        );
        check(&retry, plain, expected);
        let json = |name: &str, value: &[u8]| Some(Value::from(format!("{name} {}", value.len())));
        let expected = expected.replace(r#""CgIIPA""#, r#""CgIIPA","debug":"google.rpc.RetryInfo 4""#);
        check(&retry, DetailJson(Some(&json)), &expected);
        assert_eq!(write(&Status::new(Code::Ok, ""), plain), br#"{"code":"unknown"}"#);
    }

    #[test]
    fn error_json_of_other_servers_is_read() {
        let check = |body: &str, expected: Option<(Code, &str, usize)>| {
            let status = read(body.as_bytes(), Code::Unauthenticated, HeaderMap::new());
            let described = status
                .as_ref()
                .map(|status| (status.code(), status.message(), details::of_status(status.details()).len()));
            assert_eq!(described, expected, "{body}");
        };
        for body in ["", "null", "[]", "1", "{", "\u{fffd}", r#"{"code":"aborted"} x"#] {
            check(body, None);
        }
        check("{}", Some((Code::Unauthenticated, "", 0)));
        check(r#"{"code":null,"message":"oops"}"#, Some((Code::Unauthenticated, "oops", 0)));
        check(r#"{"code":"foobar","message":"oops"}"#, Some((Code::Unauthenticated, "oops", 0)));
        check(r#"{"code":5,"message":5,"details":5}"#, Some((Code::Unauthenticated, "", 0)));
        check(r#"{"code":"out_of_range","x":[1]}"#, Some((Code::OutOfRange, "", 0)));
        let details = |detail: &str| format!(r#"{{"code":"aborted","details":[{detail}]}}"#);
        let check_detail = |detail: &str, count| check(&details(detail), Some((Code::Aborted, "", count)));
        check_detail(r#"{"type":"a.B","value":"Cgp0"}"#, 1);
        check_detail(r#"{"type":"a.B","value":"CgIIPA==","debug":{"x":[]},"y":1}"#, 1);
        check_detail(r#"{"type":"a.B","value":"?"},{"type":"a.B","value":""},1,{"type":"a.B"}"#, 1);
    }

    #[test]
    fn end_of_stream_json_is_written() {
        let check = |outcome: Result<&HeaderMap, &Status>, expected: &str, metadata: &str| {
            let end = write_end(outcome, DetailJson::default());
            assert_eq!(String::from_utf8(end.clone()).unwrap(), expected);
            match (outcome, read_end(&end)) {
                (Ok(_), Ok(trailers)) => assert_eq!(header_lines(&trailers), metadata),
                (Err(sent), Err(read)) => {
                    assert_eq!((read.code(), read.message()), (sent.code(), sent.message()));
                    assert_eq!(header_lines(read.metadata().as_ref()), metadata);
                }
                (_, read) => panic!("{read:?}"),
            }
        };
        check(Ok(&HeaderMap::new()), "{}", "");
        let trailers =
            headers(&[("x-b", "2"), ("x-a", "1"), ("x-b", "3"), ("y-bin", "YQ=="), ("grpc-x", "1")]);
        check(
            Ok(&trailers),
            r#"{"metadata":{"grpc-x":["1"],"x-a":["1"],"x-b":["2","3"],"y-bin":["YQ"]}}"#,
            "grpc-x: 1\nx-a: 1\nx-b: 2\nx-b: 3\ny-bin: YQ",
        );
        check(
            Err(&status(Code::Unavailable, "overloaded", &[], &[("x-a", "1")])),
            r#"{"error":{"code":"unavailable","message":"overloaded"},"metadata":{"x-a":["1"]}}"#,
            "x-a: 1",
        );
        let large = headers(&[("x-a", &"a".repeat(20_000))]);
        let end = write_end(Ok(&large), DetailJson::default());
        assert_eq!(failure(read_end(&end)).0, Code::ResourceExhausted);
        let failed = Status::new(Code::Aborted, "a").prepend_metadata(&large);
        let end = write_end(Err(&failed), DetailJson::default());
        assert_eq!(end, br#"{"error":{"code":"aborted","message":"a"}}"#);
    }

    #[test]
    fn end_of_stream_json_of_other_servers_is_read() {
        let check = |end: &str, expected: Result<&str, (Code, &str)>| {
            let outcome = read_end(end.as_bytes()).map(|trailers| header_lines(&trailers));
            let outcome = outcome.as_ref().map(String::as_str);
            assert_eq!(outcome.map_err(|status| (status.code(), status.message())), expected, "{end}");
        };
        check(r#"{"error":null}"#, Ok(""));
        check(r#"{"error":{}}"#, Err((Code::Unknown, "")));
        check(r#"{"error":{"code":null,"message":"oops"}}"#, Err((Code::Unknown, "oops")));
        check(r#"{"error":{"code":"foobar","message":"oops"}}"#, Err((Code::Unknown, "oops")));
        check(r#"{"error":{"code":"unauthenticated"},"x":1}"#, Err((Code::Unauthenticated, "")));
        // A misplaced error is ignored.
        check(r#"{"code":"out_of_range","message":"oops"}"#, Ok(""));
        check(
            r#"{"metadata":{"X-A":["1",2,"3"],"x-b":"4","a b":["5"],"x-c":[],"x-d":["\n"]}}"#,
            Ok("x-a: 1\nx-a: 3\nx-b: 4"),
        );
        check(r#"{"metadata":[1]}"#, Ok(""));
        check(r#"{"metadata":{"connect-x":["1"],"content-length":["1"],"x-bin":["YQ=="]}}"#, Ok("x-bin: YQ"));
        let malformed = |why| Err((Code::Internal, why));
        check("", malformed("malformed end of the stream: EOF while parsing a value at line 1 column 0"));
        check("[]", malformed("malformed end of the stream: expected an object"));
        check(r#"{"error":1}"#, malformed("malformed end of the stream: expected an object in `error`"));
    }

    #[test]
    fn random_json_does_not_panic() {
        let words = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"error\"",
            "\"code\"",
            "\"aborted\"",
            "\"metadata\"",
            "\"details\"",
            "\"value\"",
            "\"type\"",
            "null",
            "1e999",
            "\"\\ud800\"",
            "\"x-bin\"",
            "\"?\"",
            "\"YQ=\"",
        ];
        let mut seeded = Seeded(4);
        for _ in 0..5_000 {
            let json = seeded.words(&words, 0..16);
            let _ = read(json.as_bytes(), Code::Unknown, HeaderMap::new());
            let _ = read_end(json.as_bytes());
        }
        let deep = "[".repeat(100_000);
        assert!(read_end(deep.as_bytes()).is_err());
    }
}
