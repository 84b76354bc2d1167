//! Failed calls.

use thalweg_engine::{Code, Status};
use thalweg_protobuf::json::{self, PrintOptions};
use thalweg_web::transcoding::{RequestError, error};

use crate::declared::schema;

#[test]
fn codes_map_to_http_status() {
    for (code, status) in [
        (Code::Ok, 200),
        (Code::Cancelled, 499),
        (Code::Unknown, 500),
        (Code::InvalidArgument, 400),
        (Code::DeadlineExceeded, 504),
        (Code::NotFound, 404),
        (Code::AlreadyExists, 409),
        (Code::PermissionDenied, 403),
        (Code::ResourceExhausted, 429),
        (Code::FailedPrecondition, 400),
        (Code::Aborted, 409),
        (Code::OutOfRange, 400),
        (Code::Unimplemented, 501),
        (Code::Internal, 500),
        (Code::Unavailable, 503),
        (Code::DataLoss, 500),
        (Code::Unauthenticated, 401),
    ] {
        assert_eq!(error::http_status(code).as_u16(), status, "{code:?}");
    }
}

/// Returns the JSON of a status with these details, each a type URL and its bytes.
fn json_of(code: Code, message: &str, details: &[(&str, &[u8])]) -> String {
    let schema = schema("message Why { string main_reason = 1; repeated int32 at = 2; } message Nothing {}");
    // Lengths are small enough for a single byte.
    let record = |tag: u8, value: &[u8]| [&[tag, value.len() as u8], value].concat();
    let anys = details.iter().map(|(type_url, value)| {
        record(0x1a, &[record(0x0a, type_url.as_bytes()), record(0x12, value)].concat())
    });
    let details = [b"\x08\x05".to_vec(), record(0x12, b"other")].into_iter().chain(anys);
    let details: Vec<u8> = details.flatten().collect();
    let status = Status::with_details(code, message, details.into());
    let json = error::to_json(&schema, &status, &PrintOptions::default());
    let text = String::from_utf8(json).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    text
}

#[test]
fn status_json_has_code_message_and_details() {
    let check = |details: &[(&str, &[u8])], expected: &str| {
        let expected = format!(r#"{{"code":5,"message":"no","details":[{expected}]}}"#);
        assert_eq!(json_of(Code::NotFound, "no", details), expected);
    };
    check(&[], "");
    let why = "type.googleapis.com/t.Why";
    check(
        &[(why, b"\x0a\x01x\x12\x02\x01\x02")],
        r#"{"@type":"type.googleapis.com/t.Why","mainReason":"x","at":[1,2]}"#,
    );
    check(&[(why, b"")], r#"{"@type":"type.googleapis.com/t.Why"}"#);
    check(
        &[("a/google.protobuf.Duration", b"\x08\x05"), ("a/t.Nothing", b"")],
        r#"{"@type":"a/google.protobuf.Duration","value":"5s"},{"@type":"a/t.Nothing"}"#,
    );
    // Unknown types, and malformed messages of known types.
    check(&[("a/t.Gone", b"\xff\0")], r#"{"@type":"a/t.Gone","value":"/wA="}"#);
    check(&[("t.Why", b"")], r#"{"@type":"t.Why","value":""}"#);
    check(&[("a/t.Why", b"\x0a\x09")], r#"{"@type":"a/t.Why","value":"Cgk="}"#);
    check(
        &[("a/google.protobuf.Duration", b"\x08")],
        r#"{"@type":"a/google.protobuf.Duration","value":"CA=="}"#,
    );
}

#[test]
fn texts_are_escaped() {
    assert_eq!(
        json_of(Code::Internal, "a \"b\"\n\\\u{1}é", &[("\"", b"")]),
        "{\"code\":13,\"message\":\"a \\\"b\\\"\\n\\\\\\u0001é\",\"details\":[{\"@type\":\"\\\"\",\"value\":\"\"}]}"
    );
}

#[test]
fn invalid_details_are_omitted() {
    let status = Status::with_details(Code::Aborted, "m", b"\x1a\x7f".as_slice().into());
    let json = error::to_json(&schema(""), &status, &PrintOptions::default());
    assert_eq!(json, br#"{"code":10,"message":"m","details":[]}"#);
}

#[test]
fn request_error_is_invalid_argument() {
    let schema = schema("message M { int32 x = 1; }");
    let bad = json::to_wire(schema.message("t.M").unwrap(), b"{\n \"x\": true}").unwrap_err();
    let error = RequestError::from(bad);
    assert_eq!(error.http_status().as_u16(), 400);
    let status = Status::from(error);
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.message(), "body: line 2, column 7: x: expected a number, found true");
}
