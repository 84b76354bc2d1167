//! OpenAPI documents. A step of `cargo xtask test` validates them with a public validator.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use thalweg_openapi::Comments;
use thalweg_openapi::rules::Rules;
use thalweg_openapi::{Info, document};
use thalweg_protobuf::{Schema, sources};

use crate::declared::{rules, service};
use crate::library::{FOLDER, assert_golden, descriptors};

/// The whole library of `tests/proto`. `THALWEG_GOLDEN=write` rewrites the file.
#[test]
fn library_document_matches_golden_file() {
    let (rules, info) = library();
    let found: Value = serde_json::from_str(&document(&rules, &info)).unwrap();
    if std::env::var_os("THALWEG_GOLDEN").is_some_and(|value| value == "write") {
        let golden = Path::new(FOLDER).join("golden/library.json");
        fs::write(golden, serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
    }
    assert_golden(&found);
}

#[test]
fn the_same_rules_give_the_same_bytes() {
    let (rules, info) = library();
    assert_eq!(document(&rules, &info), document(&rules, &info));
}

#[test]
fn schema_names_and_enum_numbers_are_optional() {
    let (rules, info) = library();
    let info = info.schema_names(true).enum_numbers(true);
    let found: Value = serde_json::from_str(&document(&rules, &info)).unwrap();
    let schemas = &found["components"]["schemas"];
    assert_eq!(schemas["library.v1.View"]["enum"], json!([0, 1, 2, 3]));
    assert_eq!(schemas["library.v1.View"]["type"], "integer");
    assert!(schemas["library.v1.Author"]["properties"]["display_name"].is_object());
    let list = found.pointer("/paths/~1v1~1shelves~1{shelf}~1books/get/parameters").unwrap();
    let names: Vec<&str> = list.as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(names.contains(&"filter.in_stock"), "{names:?}");
}

#[test]
fn descriptions_are_omitted_without_comments() {
    let (rules, _) = library();
    let found: Value = serde_json::from_str(&document(&rules, &Info::default())).unwrap();
    assert_eq!(found.pointer("/paths/~1v1~1authors/get/summary"), None);
    assert_eq!(found.pointer("/info"), Some(&json!({"title": "Library", "version": "0"})));
}

/// Checks the operations of rules, one method each, as `GET /path id a,b` with the names of the parameters.
fn check(rules_text: &[&str], expected: &[&str]) {
    let declarations = service(MESSAGES, "In", "Out", rules_text);
    let found: Value =
        serde_json::from_str(&document(&rules(&declarations).unwrap(), &Info::default())).unwrap();
    let mut lines = Vec::new();
    for (path, item) in found["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
            let in_path = parameters.iter().filter(|parameter| parameter["in"] == "path");
            let names: Vec<&str> = in_path.filter_map(|parameter| parameter["name"].as_str()).collect();
            let id = operation["operationId"].as_str().unwrap();
            lines.push(format!("{method} {path} {id} {}", names.join(",")).trim().to_owned());
        }
    }
    for unlisted in found["x-google-api-http"].as_array().map_or(&[][..], Vec::as_slice) {
        lines.push(format!("unlisted {} {}", unlisted["method"], unlisted["path"]).replace('"', ""));
    }
    assert_eq!(lines, expected);
}

const MESSAGES: &str = "message In { string a = 1; string b_c = 2; In in = 3; } message Out {}";

#[test]
fn paths_use_openapi_form() {
    check(&["get: '/a'"], &["get /a S_M0"]);
    check(&["get: '/'"], &["get / S_M0"]);
    check(&["get: '/{b_c}'"], &["get /{bC} S_M0 bC"]);
    check(&["get: '/{in.b_c}:go'"], &["get /{in.bC}:go S_M0 in.bC"]);
    check(&["get: '/{a=shelves/*}'"], &["get /shelves/{shelf} S_M0 shelf"]);
    check(&["get: '/{a=dogs/*/dogs/*}'"], &["get /dogs/{dog}/dogs/{dog2} S_M0 dog,dog2"]);
    check(&["get: '/{a=v1/*/fixed}/x'"], &["get /v1/{a}/fixed/x S_M0 a"]);
    check(&["get: '/{a=**}'"], &["get /{a} S_M0 a"]);
    check(&["get: '/{a=files/**}'"], &["get /files/{file} S_M0 file"]);
    check(&["get: '/x/*/**'"], &["get /x/{segment}/{rest} S_M0 segment,rest"]);
    check(&["get: '/{a=fixed}'"], &["get /fixed S_M0"]);
}

#[test]
fn methods_of_http() {
    check(&["custom: { kind: 'HEAD' path: '/a' }"], &["head /a S_M0"]);
    check(&["custom: { kind: '*' path: '/a' }"], &["get /a S_M0"]);
    check(&["custom: { kind: '*' path: '/a' } body: '*'"], &["post /a S_M0"]);
    check(&["custom: { kind: 'LOCK' path: '/a/{b_c=**}' }"], &["unlisted LOCK /a/{b_c=**}"]);
}

#[test]
fn post_without_body_has_a_content_type() {
    let of = |rule: &str| found(MESSAGES, rule);
    let body = of("post: '/a:cancel'").pointer("/paths/~1a:cancel/post/requestBody").cloned();
    let schema = json!({"type": "object", "maxProperties": 0});
    let expected = json!({"content": {"application/json": {"schema": schema}}, "required": true});
    assert_eq!(body, Some(expected));
    for (rule, method) in [("delete: '/a'", "delete"), ("get: '/a'", "get")] {
        assert_eq!(of(rule).pointer(&format!("/paths/~1a/{method}/requestBody")), None);
    }
}

#[test]
fn paths_of_the_same_shape_are_merged() {
    check(
        &["get: '/books/{a}'", "put: '/books/{b_c}'", "delete: '/{a=books/*}'"],
        &["delete /books/{a} S_M2 a", "get /books/{a} S_M0 a", "put /books/{a} S_M1 a"],
    );
    // OpenAPI cannot distinguish them, but a router can.
    check(&["get: '/x/{a}'", "get: '/x/{b_c=**}'"], &["get /x/{a} S_M0 a", "unlisted GET /x/{b_c=**}"]);
}

#[test]
fn operation_ids_are_unique() {
    check(
        &["get: '/a' additional_bindings { get: '/b' } additional_bindings { get: '/c' }", "get: '/d'"],
        &["get /a S_M0", "get /b S_M0_2", "get /c S_M0_3", "get /d S_M1"],
    );
}

#[test]
fn recursive_messages_are_not_expanded_again() {
    let messages =
        "message In { Tree tree = 1; } message Tree { Tree left = 1; Other other = 2; string leaf = 3; }
        message Other { Tree tree = 1; In in = 2; bytes raw = 3; } message Out { Tree tree = 1; }";
    let found = found(messages, "get: '/a'");
    let names: Vec<&str> = parameters(&found).iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["tree.other.raw", "tree.leaf"]);
    let tree = &found["components"]["schemas"]["t.Tree"];
    assert_eq!(tree["properties"]["left"], json!({"$ref": "#/components/schemas/t.Tree"}));
}

#[test]
fn number_of_operation_parameters_is_limited() {
    // Twelve messages, each containing the next one three times.
    let chain: String = (0..12).fold(String::new(), |all, n| {
        let next = n + 1;
        all + &format!("message M{n} {{ M{next} a = 1; M{next} b = 2; M{next} c = 3; }}\n")
    });
    for (leaf, expected) in [("string x = 1; string y = 2;", 1000), ("", 0)] {
        let messages =
            format!("{chain} message M12 {{ {leaf} }} message In {{ M0 m = 1; }} message Out {{}}");
        let found = found(&messages, "get: '/a'");
        assert_eq!(parameters(&found).len(), expected);
        let description = found.pointer("/paths/~1a/get/description").and_then(Value::as_str).unwrap();
        assert!(description.contains("more parameters"), "{description}");
    }
}

#[test]
fn services_of_the_same_name_have_distinct_operations() {
    let read = |name: &str| {
        let text = |package: &str| {
            format!(
                "syntax = 'proto3'; package {package}; message M {{}} service S {{ rpc Do(M) returns (M); }}"
            )
        };
        Some(text(name.strip_suffix(".proto").unwrap()))
    };
    let set = sources::compile(&["a.proto", "b.proto"], read).unwrap();
    let rules = Rules::new(&Schema::from_descriptor_set(&set).unwrap(), ["a.S", "b.S"]).unwrap();
    let found: Value = serde_json::from_str(&document(&rules, &Info::default())).unwrap();
    assert_eq!(found.pointer("/paths/~1a.S~1Do/post/operationId"), Some(&json!("a_S_Do")));
    assert_eq!(found.pointer("/paths/~1b.S~1Do/post/operationId"), Some(&json!("b_S_Do")));
    assert_eq!(found.pointer("/info/title"), Some(&json!("S, S")));
}

fn found(messages: &str, rule: &str) -> Value {
    let rules = rules(&service(messages, "In", "Out", &[rule])).unwrap();
    serde_json::from_str(&document(&rules, &Info::default())).unwrap()
}

fn parameters(document: &Value) -> &[Value] {
    document.pointer("/paths/~1a/get/parameters").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn library() -> (Rules, Info) {
    let set = descriptors();
    let schema = Schema::from_descriptor_set(&set).unwrap();
    let rules = Rules::new(&schema, ["library.v1.Library"]).unwrap();
    (rules, Info::default().comments(Comments::from_descriptor_set(&set)))
}
