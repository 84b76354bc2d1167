//! The calls of gapic-showcase's compliance suite: 12 requests in four groups, each made by all calls of its group, 53
//! in total. A message is sent in all supported ways: as the body, as a field in the body, as parameters and in the
//! path. The service must receive the intended message, and an echo server must return it. Names and texts are ours.
//! Fields, their values and their JSON form are the suite's.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use http::Method;
use serde_json::{Map, Value};
use thalweg_web::WebService;
use thalweg_web::transcoding::{Lookup, RequestOptions, Router};

use crate::declared::descriptors;
use crate::library::{echo, next_frame, request};
use crate::support::{router, to_json};

const DECLARATIONS: &str = r#"
    enum Kind { UNSPECIFIED = 0; PLANT = 1; ANIMAL = 2; }
    message Leaf { string text = 1; double double = 2; bool bool = 3; }
    message Child {
        string text = 1; float float = 2; double double = 3; bool bool = 4; Leaf leaf = 5;
        optional string maybe_text = 6; optional float maybe_float = 7; optional Leaf maybe_leaf = 8;
    }
    message Info {
        string text = 1; int32 int32 = 2; sint32 sint32 = 3; sfixed32 sfixed32 = 4; uint32 uint32 = 5;
        fixed32 fixed32 = 6; int64 int64 = 7; sint64 sint64 = 8; sfixed64 sfixed64 = 9; uint64 uint64 = 10;
        fixed64 fixed64 = 11; double double = 12; float float = 13; bool bool = 14; bytes bytes = 15; Kind kind = 16;
        Child child = 17;
        optional string maybe_text = 18; optional int32 maybe_int32 = 19; optional double maybe_double = 20;
        optional bool maybe_bool = 21; optional Kind maybe_kind = 22; optional Child maybe_child = 23;
        string path = 24 [json_name = "kebab-path"];
    }
    message Request {
        string name = 1; Info info = 2; bool verify = 3; int32 int32 = 4; int64 int64 = 5; double double = 6;
        optional int32 maybe_int32 = 7; optional int64 maybe_int64 = 8; optional double maybe_double = 9;
        string query = 10 [json_name = "kebab-query"]; optional string maybe_binding = 11;
    }
    service S {
        rpc Body(Request) returns (Request) {
            option (google.api.http) = {
                post: "/v1/repeat:body" body: "*"
                additional_bindings { put: "/v1/repeat:body" body: "*" }
                additional_bindings { patch: "/v1/repeat:body" body: "*" }
            };
        }
        rpc Info(Request) returns (Request) { option (google.api.http) = { post: "/v1/repeat:info" body: "info" }; }
        rpc Query(Request) returns (Request) { option (google.api.http) = { get: "/v1/repeat:query" }; }
        rpc Simple(Request) returns (Request) {
            option (google.api.http) = {
                get: "/v1/repeat/{info.text}/{info.int32}/{info.double}/{info.bool}/{info.kind}:simple"
            };
        }
        rpc Resource(Request) returns (Request) {
            option (google.api.http) = {
                get: "/v1/repeat/{info.text=first/*}/{info.child.text=second/*}/bool/{info.bool}:resource"
                additional_bindings {
                    get: "/v1/repeat/{info.child.text=first/*}/{info.text=second/*}/bool/{info.bool}:backward"
                }
            };
        }
        rpc Trailing(Request) returns (Request) {
            option (google.api.http) = {
                get: "/v1/repeat/{info.text=first/*}/{info.child.text=second/**}:trailing"
            };
        }
    }"#;

#[derive(Clone, Copy, Debug)]
enum RequestForm {
    Body(&'static str),
    Info,
    Query,
    /// The first template whose variables, the parts in braces, fit the values.
    Path(&'static [&'static str]),
}

const SIMPLE: RequestForm =
    RequestForm::Path(&["/v1/repeat/{info.text}/{info.int32}/{info.double}/{info.bool}/{info.kind}:simple"]);
const RESOURCE: RequestForm = RequestForm::Path(&[
    "/v1/repeat/{info.text=first/*}/{info.child.text=second/*}/bool/{info.bool}:resource",
    "/v1/repeat/{info.child.text=first/*}/{info.text=second/*}/bool/{info.bool}:backward",
]);
const TRAILING: RequestForm =
    RequestForm::Path(&["/v1/repeat/{info.text=first/*}/{info.child.text=second/**}:trailing"]);

/// The request as the body, and as parameters.
const MESSAGE_FORMS: [RequestForm; 4] =
    [RequestForm::Body("POST"), RequestForm::Body("PUT"), RequestForm::Body("PATCH"), RequestForm::Query];
const ALL: [RequestForm; 6] =
    [MESSAGE_FORMS[0], MESSAGE_FORMS[1], MESSAGE_FORMS[2], RequestForm::Query, SIMPLE, RequestForm::Info];

/// The suite's groups: calls, and the requests made by each of them.
const SUITE: [(&[RequestForm], &[&str]); 4] = [
    (
        &ALL,
        &[
            r#"{
                "name": "all kinds", "verify": true,
                "info": {
                    "text": "Hello", "int32": -1, "sint32" : -2, "sfixed32": -3, "uint32": 5, "fixed32": 7,
                    "int64": -11, "sint64": -13, "sfixed64": -17, "uint64": 19, "fixed64":23,
                    "double": -29e4, "float": -31, "bool": true, "kind": "ANIMAL",
                    "maybeText": "Goodbye", "maybeInt32": -37, "maybeDouble": -41.43, "maybeBool": true,
                    "maybeKind": "PLANT",
                    "child": { "text": "second/bool/salutation" }
                },
                "int32": -10, "int64": -110, "double": -54e4,
                "maybeInt32": -47, "maybeInt64": -477, "maybeDouble": -61.73
            }"#,
            r#"{
                "name": "nothing optional", "verify": true,
                "info": {
                    "text": "Hello", "int32": -1, "sint32" : -2, "sfixed32": -3, "uint32": 5, "fixed32": 7,
                    "int64": -11, "sint64": -13, "sfixed64": -17, "uint64": 19, "fixed64":23,
                    "double": -29e4, "float": -31, "bool": true, "kind": "ANIMAL",
                    "child": { "text": "second/bool/salutation" }
                }
            }"#,
            r#"{
                "name": "zeros but for texts", "verify": true,
                "info": {
                    "text": "Hello", "int32": 0, "sint32" : 0, "sfixed32": 0, "uint32": 0, "fixed32": 0,
                    "int64": 0, "sint64": 0, "sfixed64": 0, "uint64": 0, "fixed64": 0,
                    "double": 0, "float": 0, "bool": false, "kind": "UNSPECIFIED",
                    "maybeText": "Goodbye", "maybeInt32": 0, "maybeDouble": 0, "maybeBool": false,
                    "maybeKind": "UNSPECIFIED"
                }
            }"#,
            r#"{
                "name": "the largest", "verify": true,
                "info": {
                    "text": "more than ASCII, and not to be printed: ☺ → ← \"\\\/\b\f\r\t\u1234, all but new lines",
                    "int32": 2147483647, "sint32" : 2147483647, "sfixed32": 2147483647,
                    "uint32": 4294967295, "fixed32": 4294967295,
                    "int64": "9223372036854775807", "sint64": "9223372036854775807",
                    "sfixed64": "9223372036854775807",
                    "uint64": "18446744073709551615", "fixed64": "18446744073709551615",
                    "double": 1.797693134862315708145274237317043567981e+308,
                    "float": 3.40282346638528859811704183484516925440e+38, "bool": false,
                    "maybeText": "Goodbye", "maybeInt32": 2147483647,
                    "maybeDouble": 1.797693134862315708145274237317043567981e+308, "maybeBool": false
                }
            }"#,
            r#"{ "name": "a space", "verify": true, "info": { "text": "Hello there" } }"#,
            r#"{ "name": "quotes", "verify": true, "info": { "text": "Hello \"You\"" } }"#,
            r#"{ "name": "a percent", "verify": true, "info": { "text": "Hello 100%" } }"#,
        ],
    ),
    (
        &MESSAGE_FORMS,
        &[r#"{
            "name": "slashes, and what looks like another part of a path", "verify": true,
            "info": {
                "text": "first/hello/second/greetings", "maybeBool": true,
                "child": { "text": "second/zzz/bool/true" }
            }
        }"#],
    ),
    (
        &[RESOURCE],
        &[
            r#"{
                "name": "any binding", "verify": true,
                "info": { "text": "first/hello", "maybeBool": true, "child": { "text": "second/greetings" } }
            }"#,
            r#"{
                "name": "the first binding", "verify": true,
                "info": { "text": "first/hello", "maybeBool": true, "child": { "text": "second/greetings" } },
                "maybeBinding":
                    "/v1/repeat/{info.text=first/*}/{info.child.text=second/*}/bool/{info.bool}:resource"
            }"#,
            r#"{
                "name": "the additional binding", "verify": true,
                "info": { "text": "second/greetings", "maybeBool": true, "child": { "text": "first/hello" } },
                "maybeBinding":
                    "/v1/repeat/{info.child.text=first/*}/{info.text=second/*}/bool/{info.bool}:backward"
            }"#,
        ],
    ),
    (
        &MESSAGE_FORMS,
        &[r#"{
            "name": "zeros", "verify": true,
            "info": {
                "text": "", "int32": 0, "sint32" : 0, "sfixed32": 0, "uint32": 0, "fixed32": 0,
                "int64": 0, "sint64": 0, "sfixed64": 0, "uint64": 0, "fixed64":20,
                "double": 0, "float": 0, "bool": false,
                "maybeText": "", "maybeInt32": 0, "maybeDouble": 0, "maybeBool": false
            }
        }"#],
    ),
];

#[test]
fn the_suite() {
    let router = router(DECLARATIONS);
    let mut calls = 0;
    for (forms, requests) in SUITE {
        for text in requests {
            for form in forms {
                check(&router, *form, text);
                calls += 1;
            }
        }
    }
    let requests: usize = SUITE.iter().map(|(_, requests)| requests.len()).sum();
    assert_eq!((calls, requests), (53, 12));
}

/// Cases that the suite lacks: bytes, nested messages, least numbers and other kinds of text.
#[test]
fn every_value_round_trips_in_every_request_form() {
    let router = router(DECLARATIONS);
    let deep = r#"{
        "name": "more", "info": {
            "text": "t", "bytes": "AP8_",
            "maybeChild": { "float": 1.5, "maybeText": "", "maybeFloat": 0, "leaf": { "text": "x", "double": 0.1 } }
        }
    }"#;
    let least = r#"{
        "info": {
            "text": "\n", "int32": -2147483648, "sint32": -2147483648, "sfixed32": -2147483648,
            "int64": "-9223372036854775808", "sint64": "-9223372036854775808", "sfixed64": "-9223372036854775808",
            "double": 5e-324, "float": -3.4028235e38
        }
    }"#;
    for form in ALL {
        for text in [deep, least] {
            check(&router, form, text);
        }
        for text in ["a+b&c=d?e#f", "%2F", "a/b", "a:b", "a:simple", ".", "café"] {
            check(&router, form, &format!(r#"{{ "info": {{ "text": "{text}", "kind": "PLANT" }} }}"#));
        }
    }
}

#[test]
fn resource_names_are_path_segments() {
    let router = router(DECLARATIONS);
    let message = |text: &str, child: &str| {
        let child = format!(r#"{{ "text": "{child}", "double": 2 }}"#);
        format!(r#"{{ "info": {{ "text": "{text}", "bool": true, "child": {child} }} }}"#)
    };
    check(&router, RESOURCE, &message("first/a b", "second/c%d"));
    check(&router, RESOURCE, &message("second/a b", "first/c%d"));
    for child in ["second", "second/a", "second/zzz/bool/true", "second/a:trailing"] {
        check(&router, TRAILING, &message("first/hello", child));
    }
}

#[test]
fn json_names_need_not_be_identifiers() {
    let router = router(DECLARATIONS);
    let message = r#"{
        "info": { "text": "t", "kebab-path": "p", "int32": 1, "double": 2, "bool": true, "kind": "PLANT" },
        "kebab-query": "q"
    }"#;
    check(&router, RequestForm::Query, message);
    check(&router, SIMPLE, message);
}

#[track_caller]
fn check(router: &Router, form: RequestForm, text: &str) {
    // serde_json parses values slightly above the largest double as infinite.
    let message = text.replace("1.797693134862315708145274237317043567981e+308", "1.7976931348623157e308");
    let message: Value = serde_json::from_str(&message).unwrap();
    let (method, target, body) = build_request(form, text, &message);
    let made = to_json(router, method, &target, &body, &RequestOptions::default());
    let made: Value =
        serde_json::from_str(&made.unwrap_or_else(|error| panic!("{target}: {error}"))).unwrap();
    check_same(&message, &made, &target);
    assert_eq!(served(method, &target, &body), made, "{method} {target}, served");
    if let Some(binding) = message.get("maybeBinding") {
        let path = target.split('?').next().unwrap();
        let Lookup::Route(route) = router.find(&method.parse::<Method>().unwrap(), path) else {
            panic!("{path}")
        };
        assert_eq!(route.binding().template().to_string(), binding.as_str().unwrap());
    }
}

/// Checks that the intended values are there and nothing else, independently of the code under test.
#[track_caller]
fn check_same(meant: &Value, made: &Value, target: &str) {
    let mut made: BTreeMap<String, String> = flattened(made).into_iter().collect();
    for (path, meant) in flattened(meant) {
        let name = path.rsplit('.').next().unwrap();
        match made.remove(&path) {
            Some(value) => assert!(is_same(name, &meant, &value), "{target}: {path} is {value}, not {meant}"),
            // For fields without presence, zero may be absent.
            None => assert!(is_zero(&meant) && !name.starts_with("maybe"), "{target}: {path} is not there"),
        }
    }
    assert!(made.is_empty(), "{target}: {made:?}");
}

fn is_same(name: &str, meant: &str, value: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    let float = |text: &str| text.parse::<f32>().ok();
    match name.trim_start_matches("maybe").to_lowercase().as_str() {
        "double" => number(meant) == number(value),
        "float" => float(meant) == float(value),
        // Base64 may be in either alphabet.
        "bytes" => meant.replace('_', "/") == value,
        _ => meant == value,
    }
}

fn is_zero(text: &str) -> bool {
    matches!(text, "" | "0" | "false" | "UNSPECIFIED")
}

/// Returns the JSON response of an echo server.
fn served(method: &str, target: &str, body: &str) -> Value {
    static SERVICE: LazyLock<WebService> = LazyLock::new(|| {
        let methods = ["t.S/Body", "t.S/Info", "t.S/Query", "t.S/Resource", "t.S/Simple", "t.S/Trailing"];
        echo(descriptors(DECLARATIONS), &methods)
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let response = SERVICE.call(request(&format!("{method} {target}"), body)).await;
        let (head, mut body) = response.into_parts();
        let body = next_frame(&mut body).await.unwrap();
        assert_eq!(head.status, 200, "{target}: {body}");
        assert_eq!(head.headers["content-type"], "application/json");
        serde_json::from_str(&body).unwrap()
    })
}

/// Returns method, path with query, and body of a request.
fn build_request(form: RequestForm, text: &str, message: &Value) -> (&'static str, String, String) {
    let mut rest = flattened(message);
    match form {
        RequestForm::Body(method) => (method, "/v1/repeat:body".to_owned(), text.to_owned()),
        RequestForm::Info => {
            rest.retain(|(name, _)| !name.starts_with("info."));
            // The verbatim text.
            let info = text.split_once("\"info\":").unwrap().1.trim_start();
            let mut depth = 0;
            let end = info.find(|character| {
                depth += i32::from(character == '{') - i32::from(character == '}');
                depth == 0
            });
            let info = info[..=end.unwrap()].to_owned();
            ("POST", format!("/v1/repeat:info{}", query(&rest)), info)
        }
        RequestForm::Query => ("GET", format!("/v1/repeat:query{}", query(&rest)), String::new()),
        RequestForm::Path(templates) => {
            let path = templates.iter().find_map(|template| expanded(template, &mut rest));
            let path = path.unwrap_or_else(|| panic!("{text} fits none of {templates:?}"));
            ("GET", format!("{path}{}", query(&rest)), String::new())
        }
    }
}

/// Returns the path of a template if its variables fit. Their values are then removed from the parameters.
fn expanded(template: &str, leaves: &mut Vec<(String, String)>) -> Option<String> {
    let (mut path, mut rest, mut names) = (String::new(), template, Vec::new());
    while let Some((front, tail)) = rest.split_once('{') {
        let (variable, tail) = tail.split_once('}')?;
        let (name, pattern) = variable.split_once('=').unwrap_or((variable, "*"));
        let value = leaves.iter().find(|(leaf, _)| leaf == name).map(|(_, value)| value.as_str());
        // Absent values are zero.
        let value = value.unwrap_or(match name {
            "info.bool" => "false",
            "info.kind" => "UNSPECIFIED",
            _ => "0",
        });
        if !format!("{value}/").starts_with(pattern.trim_end_matches('*')) {
            return None;
        }
        // Single segments have no slash; others keep their slashes.
        let unescaped = if pattern == "*" { "" } else { "/" };
        path += front;
        path += &encoded(value, unescaped);
        names.push(name);
        rest = tail;
    }
    leaves.retain(|(leaf, _)| !names.contains(&leaf.as_str()));
    Some(path + rest)
}

/// Returns the leaves as text, with their paths.
fn flattened(message: &Value) -> Vec<(String, String)> {
    fn walk(prefix: &str, object: &Map<String, Value>, leaves: &mut Vec<(String, String)>) {
        for (name, value) in object {
            let path = format!("{prefix}{name}");
            match value {
                Value::Object(inner) => walk(&format!("{path}."), inner, leaves),
                Value::String(text) => leaves.push((path, text.clone())),
                other => leaves.push((path, other.to_string())),
            }
        }
    }
    let mut leaves = Vec::new();
    walk("", message.as_object().unwrap(), &mut leaves);
    leaves
}

fn query(leaves: &[(String, String)]) -> String {
    let mut query = "?$alt=json".to_owned();
    for (name, value) in leaves {
        write!(query, "&{name}={}", encoded(value, "")).unwrap();
    }
    query
}

/// Encodes all characters except letters, digits, `-_.~` and `unescaped`, as the specification requires of clients.
fn encoded(text: &str, unescaped: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        let character = char::from(byte);
        if byte.is_ascii_alphanumeric() || "-_.~".contains(character) || unescaped.contains(character) {
            encoded.push(character);
        } else {
            write!(encoded, "%{byte:02X}").unwrap();
        }
    }
    encoded
}
