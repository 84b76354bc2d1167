//! One message by all the ways that a client has for it: as the body, as a field that is the body, by parameters, and
//! by the path. All must come to the same, also where it is served. What is checked is what the compliance service of
//! gapic-showcase checks.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use thalweg_web::WebService;
use thalweg_web::transcoding::{RequestOptions, Router};

use crate::library::{echo, next_frame, request};
use crate::support::{descriptors, router, to_json};

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
        string query = 10 [json_name = "kebab-query"];
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

#[derive(Clone, Copy)]
enum Way {
    Body(&'static str),
    Info,
    Query,
    /// A template, whose variables are the parts in braces.
    Path(&'static str),
}

const SIMPLE: Way =
    Way::Path("/v1/repeat/{info.text}/{info.int32}/{info.double}/{info.bool}/{info.kind}:simple");
const RESOURCE: Way = Way::Path("/v1/repeat/{info.text}/{info.child.text}/bool/{info.bool}:resource");
const RESOURCE_BACKWARD: Way =
    Way::Path("/v1/repeat/{info.child.text}/{info.text}/bool/{info.bool}:backward");
const TRAILING: Way = Way::Path("/v1/repeat/{info.text}/{info.child.text}:trailing");
const BODIES: [Way; 5] = [Way::Body("POST"), Way::Body("PUT"), Way::Body("PATCH"), Way::Info, Way::Query];

#[track_caller]
fn check(router: &Router, way: Way, message: &Value) {
    let (method, target, body) = asked(way, message);
    let found = to_json(router, method, &target, &body, &RequestOptions::default());
    let found: Value =
        serde_json::from_str(&found.unwrap_or_else(|error| panic!("{target}: {error}"))).unwrap();
    // As the body has it: without what says nothing.
    let expected =
        to_json(router, "POST", "/v1/repeat:body", &message.to_string(), &RequestOptions::default());
    let expected: Value = serde_json::from_str(&expected.unwrap()).unwrap();
    assert_eq!(found, expected, "{method} {target}");
    assert_eq!(served(method, &target, &body), expected, "{method} {target}, served");
}

/// The JSON that a server answers which answers with what it is asked.
fn served(method: &str, target: &str, body: &str) -> Value {
    static SERVICE: LazyLock<WebService> = LazyLock::new(|| {
        let methods = ["t.S/Body", "t.S/Info", "t.S/Query", "t.S/Resource", "t.S/Simple", "t.S/Trailing"];
        echo(descriptors(DECLARATIONS), &methods)
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let answer = SERVICE.call(request(&format!("{method} {target}"), body)).await;
        let (head, mut body) = answer.into_parts();
        let body = next_frame(&mut body).await.unwrap();
        assert_eq!(head.status, 200, "{target}: {body}");
        assert_eq!(head.headers["content-type"], "application/json");
        serde_json::from_str(&body).unwrap()
    })
}

/// Method, path with query, and body of a request.
fn asked(way: Way, message: &Value) -> (&'static str, String, String) {
    let mut rest = flattened(message);
    match way {
        Way::Body(method) => (method, "/v1/repeat:body".to_owned(), message.to_string()),
        Way::Info => {
            rest.retain(|(name, _)| !name.starts_with("info."));
            let info = message.get("info").map(Value::to_string);
            ("POST", format!("/v1/repeat:info{}", query(&rest)), info.unwrap_or_default())
        }
        Way::Query => ("GET", format!("/v1/repeat:query{}", query(&rest)), String::new()),
        Way::Path(template) => {
            let mut path = template.to_owned();
            rest.retain(|(name, value)| {
                let variable = format!("{{{name}}}");
                let is_variable = path.contains(&variable);
                // Single segments have no slash; of the others the slashes stay.
                let is_single = template.ends_with(":simple");
                path = path.replace(&variable, &encoded(value, if is_single { "" } else { "/" }));
                !is_variable
            });
            ("GET", format!("{path}{}", query(&rest)), String::new())
        }
    }
}

/// Leaves by their paths, as texts.
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

/// With all but letters, digits and `-_.~` encoded, as the specification asks of clients; and but for `kept`.
fn encoded(text: &str, kept: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        let character = char::from(byte);
        if byte.is_ascii_alphanumeric() || "-_.~".contains(character) || kept.contains(character) {
            encoded.push(character);
        } else {
            write!(encoded, "%{byte:02X}").unwrap();
        }
    }
    encoded
}

#[test]
fn every_value_comes_by_every_way() {
    let router = router(DECLARATIONS);
    let ways = || BODIES.into_iter().chain([SIMPLE]);
    let basic = json!({
        "name": "basic", "verify": true, "int32": -10, "int64": "-110", "double": -540_000.0,
        "maybeInt32": -47, "maybeInt64": "-477", "maybeDouble": -61.73,
        "info": {
            "text": "Hello", "int32": -1, "sint32": -2, "sfixed32": -3, "uint32": 5, "fixed32": 7, "int64": -11,
            "sint64": -13, "sfixed64": -17, "uint64": 19, "fixed64": 23, "double": -29e4, "float": -31, "bool": true,
            "bytes": "AP8_", "kind": "ANIMAL", "maybeText": "Goodbye", "maybeInt32": -37, "maybeDouble": -41.43,
            "maybeBool": true, "maybeKind": "PLANT", "child": { "text": "second/bool/salutation" },
            "maybeChild": { "float": 1.5, "leaf": { "text": "x", "double": 0.1, "bool": true } },
        },
    });
    let zeros = json!({
        "name": "zeros",
        "info": {
            "text": "Hello", "int32": 0, "sint32": 0, "uint32": 0, "int64": 0, "fixed64": 0, "double": 0, "float": 0,
            "bool": false, "kind": "UNSPECIFIED", "maybeText": "", "maybeInt32": 0, "maybeDouble": 0,
            "maybeBool": false, "maybeKind": "UNSPECIFIED", "maybeChild": { "maybeText": "", "maybeFloat": 0 },
        },
    });
    let extreme = |int32: i64, int64: &str, uint64: &str, double: f64, float: f64| {
        json!({
            "name": "extreme",
            "info": {
                "text": "☺ → ← \"\\/\u{8}\u{c}\r\n\t\u{1234} é", "int32": int32, "sint32": int32, "sfixed32": int32,
                "uint32": u32::MAX, "fixed32": u32::MAX, "int64": int64, "sint64": int64, "sfixed64": int64,
                "uint64": uint64, "fixed64": uint64, "double": double, "float": float, "bool": false,
                "kind": "UNSPECIFIED", "maybeInt32": int32, "maybeDouble": double,
            },
        })
    };
    let most =
        extreme(i32::MAX.into(), &i64::MAX.to_string(), &u64::MAX.to_string(), f64::MAX, f32::MAX.into());
    let least = extreme(i32::MIN.into(), &i64::MIN.to_string(), "0", 5e-324, f32::MIN.into());
    for message in [&basic, &zeros, &most, &least] {
        for way in ways() {
            check(&router, way, message);
        }
    }
    for text in
        ["Hello there", "Hello \"You\"", "Hello 100%", "a+b&c=d?e#f", "%2F", "a/b", "a:b", "a:simple", "."]
    {
        let info = json!({ "text": text, "int32": 0, "double": 0, "bool": false, "kind": "PLANT" });
        for way in ways() {
            check(&router, way, &json!({ "info": info }));
        }
    }
    for way in BODIES {
        check(&router, way, &json!({ "info": { "text": "", "fixed64": 20 } }));
        check(&router, way, &json!({ "info": { "text": "first/hello/second/greetings" } }));
    }
}

#[test]
fn resources_are_parts_of_the_path() {
    let router = router(DECLARATIONS);
    let message = |text: &str, child: &str| {
        let child = json!({ "text": child, "double": 2 });
        json!({ "info": { "text": text, "bool": true, "maybeBool": true, "child": child } })
    };
    check(&router, RESOURCE, &message("first/hello", "second/greetings"));
    check(&router, RESOURCE_BACKWARD, &message("second/greetings", "first/hello"));
    check(&router, RESOURCE, &message("first/a b", "second/c%d"));
    for child in ["second", "second/a", "second/zzz/bool/true", "second/a:trailing"] {
        check(&router, TRAILING, &message("first/hello", child));
    }
}

#[test]
fn names_of_json_that_are_no_identifiers() {
    let router = router(DECLARATIONS);
    let message = json!({
        "info": { "text": "t", "kebab-path": "p", "int32": 1, "double": 2, "bool": true, "kind": "PLANT" },
        "kebab-query": "q",
    });
    check(&router, Way::Query, &message);
    check(&router, SIMPLE, &message);
}
