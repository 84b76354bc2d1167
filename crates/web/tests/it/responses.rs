//! Messages that become bodies.

use bytes::Bytes;
use serde_json::Value;
use thalweg_protobuf::json::{self, PrintOptions};
use thalweg_web::transcoding::response;

use crate::declared::{rules, service};

const MESSAGES: &str = r#"
    enum Colour { NONE = 0; RED = 1; }
    message Book { string main_title = 1; Colour colour = 2; }
    message Out {
        Book book = 1; repeated Book books = 2; map<string, int32> counts = 3; string text = 4; int64 long = 5;
        bool bool = 6; Colour colour = 7; double double = 8; bytes bytes = 9; repeated int32 numbers = 10;
        google.protobuf.Timestamp time = 11; optional string maybe = 12; google.api.HttpBody raw = 13;
        repeated string texts = 14 [json_name = "a\"}:{b"]; int32 short = 15;
    }"#;

/// Returns the response body of a method with the `response_body` `field`, for a message with this JSON.
#[track_caller]
fn response_body(field: &str, message: &str, options: &PrintOptions) -> String {
    let rule = format!("get: \"/a\" response_body: \"{field}\"");
    let rules = rules(&service(MESSAGES, "Out", "Out", &[&rule])).unwrap();
    let binding = &rules.bindings()[0];
    let wire = json::to_wire(rules.output(binding), message.as_bytes()).unwrap();
    let content = response::from_wire(&rules, binding, &wire.into(), options).unwrap();
    assert_eq!(content.content_type, "application/json");
    String::from_utf8(content.data.to_vec()).unwrap()
}

#[track_caller]
fn check(field: &str, message: &str, expected: &str) {
    assert_eq!(response_body(field, message, &PrintOptions::default()), expected, "{field} of {message}");
}

#[test]
fn response_body_is_the_message_or_a_field() {
    let all =
        r#"{"book":{"mainTitle":"a"},"books":[{"mainTitle":"b"},{}],"counts":{"x":1},"text":"t","long":"5"}"#;
    check("", all, all);
    check("book", all, r#"{"mainTitle":"a"}"#);
    check("books", all, r#"[{"mainTitle":"b"},{}]"#);
    check("counts", all, r#"{"x":1}"#);
    check("text", all, "\"t\"");
    check("long", all, "\"5\"");
    check("numbers", r#"{"numbers":[1,2,3]}"#, "[1,2,3]");
    check("colour", r#"{"colour":"RED"}"#, "\"RED\"");
    check("time", r#"{"time":"1970-01-01T00:00:05Z"}"#, "\"1970-01-01T00:00:05Z\"");
    check("bytes", r#"{"bytes":"YQ=="}"#, "\"YQ==\"");
    check("maybe", r#"{"maybe":"\": {"}"#, r#""\": {""#);
    check("texts", r#"{"texts":["a","\n  b"]}"#, r#"["a","\n  b"]"#);
}

#[test]
fn missing_response_field_has_its_default() {
    for (field, expected) in [
        ("", "{}"),
        ("book", "{}"),
        ("books", "[]"),
        ("counts", "{}"),
        ("text", "\"\""),
        ("long", "\"0\""),
        ("short", "0"),
        ("bool", "false"),
        ("colour", "\"NONE\""),
        ("double", "0"),
        ("bytes", "\"\""),
        ("numbers", "[]"),
        ("time", "null"),
        ("maybe", "null"),
    ] {
        check(field, "{}", expected);
    }
}

#[test]
fn defaults_are_printed_in_present_messages() {
    let messages = "
        enum Kind { CLASSIC = 0; COMIC = 1; }
        message Shelf { string name = 1; string theme = 2; Kind kind = 3; }
        message Life { int64 born = 1; string text = 2; }
        message Author { string first_name = 1; Life life = 2; }
        message Book { string title = 1; Author author = 2; Shelf shelf = 3; }";
    let check = |output: &str, message: &str, expected: [&str; 2]| {
        let rules = rules(&service(messages, "Book", output, &["get: \"/a\""])).unwrap();
        let binding = &rules.bindings()[0];
        let wire = Bytes::from(json::to_wire(rules.output(binding), message.as_bytes()).unwrap());
        for (defaults, expected) in [false, true].into_iter().zip(expected) {
            let options = PrintOptions::default().defaults(defaults);
            let content = response::from_wire(&rules, binding, &wire, &options).unwrap();
            let values = [&content.data[..], expected.as_bytes()].map(serde_json::from_slice::<Value>);
            let [found, expected] = values.map(Result::unwrap);
            assert_eq!(found, expected, "{output} of {message}");
        }
    };
    let empty = r#"{"name":"","theme":"","kind":"CLASSIC"}"#;
    check("Shelf", "{}", ["{}", empty]);
    check("Shelf", empty, ["{}", empty]);
    let full = r#"{"name":"1","theme":"History","kind":"COMIC"}"#;
    check("Shelf", full, [full, full]);
    let nested = r#"{"title":"8","author":{"firstName":"Leo","life":{"born":"1828","text":"a"}}}"#;
    check("Book", nested, [nested, nested]);
    check(
        "Book",
        r#"{"author":{"life":{}}}"#,
        [
            r#"{"author":{"life":{}}}"#,
            r#"{"title":"","author":{"firstName":"","life":{"born":"0","text":""}}}"#,
        ],
    );
    for message in [r#"{"payload":"Hello!"}"#, r#"{"nested":{"payload":"Hello!"}}"#] {
        check("google.protobuf.Struct", message, [message, message]);
    }
}

#[test]
fn print_options_apply_to_response_fields() {
    let options = PrintOptions::default().schema_names(true).enum_numbers(true).defaults(true);
    assert_eq!(response_body("book", r#"{"book":{}}"#, &options), r#"{"main_title":"","colour":0}"#);
    assert_eq!(response_body("books", r#"{"books":[{}]}"#, &options), r#"[{"main_title":"","colour":0}]"#);
    assert_eq!(response_body("colour", "{}", &options), "0");
    let pretty = PrintOptions::default().pretty(true);
    let message = r#"{"books":[{"mainTitle":"b"}]}"#;
    assert_eq!(response_body("books", message, &pretty), "[\n  {\n    \"mainTitle\": \"b\"\n  }\n]");
}

#[test]
fn split_records_are_merged() {
    let rules = rules(&service(MESSAGES, "Out", "Out", &["get: \"/a\" response_body: \"book\""])).unwrap();
    let wire = Bytes::from_static(b"\x0a\x03\x0a\x01a\x22\x01t\x0a\x02\x10\x01");
    let content = response::from_wire(&rules, &rules.bindings()[0], &wire, &PrintOptions::default()).unwrap();
    assert_eq!(content.data, br#"{"mainTitle":"a","colour":"RED"}"#.as_slice());
    let broken = Bytes::from_static(b"\x0a\x03\x0a");
    assert!(response::from_wire(&rules, &rules.bindings()[0], &broken, &PrintOptions::default()).is_err());
}

#[test]
fn http_body_response_is_passed_through() {
    let http_body_service = service("message In {}", "In", "google.api.HttpBody", &["get: \"/a\""]);
    let field = service(MESSAGES, "Out", "Out", &["get: \"/a\" response_body: \"raw\""]);
    for (declarations, wire, expected, at) in [
        (&http_body_service, &b"\x0a\x09image/png\x12\x03\0\xff\0"[..], "image/png", Some(13)),
        (&http_body_service, b"\x12\x03\0\xff\0", "application/octet-stream", Some(2)),
        (&field, b"\x22\x01t\x6a\x0b\x0a\x04a/bc\x12\x03\0\xff\0", "a/bc", Some(13)),
        (&field, b"\x6a\x06\x0a\x04a/bc\x6a\x05\x12\x03\0\xff\0", "a/bc", None),
    ] {
        let rules = rules(declarations).unwrap();
        let wire = Bytes::copy_from_slice(wire);
        let content =
            response::from_wire(&rules, &rules.bindings()[0], &wire, &PrintOptions::default()).unwrap();
        assert_eq!((&*content.content_type, &content.data[..]), (expected, &b"\0\xff\0"[..]));
        // It is not a copy.
        if let Some(at) = at {
            assert_eq!(content.data.as_ptr(), wire[at..].as_ptr());
        }
    }
}
