//! The page's parts as sent. `page_browser` tests them in a browser.

use http::Method;
use serde_json::{Value, json};
use thalweg_openapi::Info;
use thalweg_openapi::Page;

use crate::openapi::library;

fn page() -> Page {
    let (rules, info) = library();
    Page::new(&rules, &info)
}

#[test]
fn every_referenced_part_exists() {
    let page = page();
    let html = page.respond(&Method::GET, "/docs").unwrap();
    let text = String::from_utf8(html.body().to_vec()).unwrap();
    let mut parts = 0;
    for attribute in ["href=\"", "src=\""] {
        let targets = text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
        // Links within the page are not parts.
        for target in targets.filter(|target| !target.starts_with('#')) {
            assert!(page.respond(&Method::GET, &format!("/{target}")).is_some(), "{target}");
            parts += 1;
        }
    }
    assert_eq!(parts, 3);
    // Inline code is forbidden by the policy.
    assert!(
        !text.contains("<script>")
            && !text.contains("<style")
            && !text.contains(" style=")
            && !text.contains(" on")
    );
    let css = page.respond(&Method::GET, "/docs/page.css").unwrap();
    let css = String::from_utf8(css.body().to_vec()).unwrap();
    assert!(!css.contains("url(") && !css.contains("@import"));
}

#[test]
fn policy_forbids_other_sources() {
    let page = page();
    for path in ["/docs", "/docs/page.js", "/docs/page.css", "/docs/icon.svg", "/docs/services.json"] {
        let response = page.respond(&Method::GET, path).unwrap();
        let policy = response.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    }
}

#[test]
fn only_get_and_head_are_allowed() {
    let page = page();
    assert_eq!(page.respond(&Method::HEAD, "/docs").unwrap().status(), 200);
    let refused = page.respond(&Method::POST, "/docs/page.js").unwrap();
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["allow"]),
        (405, &"GET, HEAD".parse().unwrap())
    );
    for path in ["/", "/docs/", "/docs/page.html", "/docs/page.js/", "/openapi.json"] {
        assert!(page.respond(&Method::GET, path).is_none(), "{path}");
    }
}

#[test]
fn page_data_has_services_types_and_comments() {
    let services = page().respond(&Method::GET, "/docs/services.json").unwrap();
    let services: Value = serde_json::from_slice(services.body()).unwrap();
    assert_eq!(services["title"], "Library");
    let library = &services["services"][0];
    assert_eq!((&library["name"], &library["file"]), (&json!("library.v1.Library"), &json!("library.proto")));
    let methods = library["methods"].as_array().unwrap();
    let method = |name: &str| methods.iter().find(|method| method["name"] == name).unwrap();
    assert_eq!(
        method("GetBook"),
        &json!({
            "name": "GetBook",
            "comment": "Gets a book. By its name, or by its shelf and number.\n\n\
                        A book that is lent out is found, too.",
            "input": "library.v1.GetBookRequest",
            "output": "library.v1.Book",
            "isClientStreaming": false,
            "isServerStreaming": false,
            "hasNoSideEffects": true,
            "http": [["GET", "/v1/{name=shelves/*/books/*}"], ["GET", "/v1/books/{name}"]],
        })
    );
    assert_eq!(method("LockBook")["isDeprecated"], true);
    assert_eq!(method("Ask")["http"], json!([["POST", "/library.v1.Library/Ask"]]));
    let fields = services["messages"]["library.v1.Book"]["fields"].as_array().unwrap();
    let field = |name: &str| fields.iter().find(|field| field["name"] == name).unwrap();
    for (name, key, value) in [
        ("title", "isRequired", json!(true)),
        ("created", "isOutputOnly", json!(true)),
        ("created", "kind", json!("google.protobuf.Timestamp")),
        ("secret", "isInputOnly", json!(true)),
        ("id", "isDeprecated", json!(true)),
        ("is_rare", "isOptional", json!(true)),
        ("is_rare", "oneof", Value::Null),
        ("is_rare", "jsonName", json!("isRare")),
        ("shelf", "oneof", json!("place")),
        ("shelf", "isOptional", json!(false)),
        ("labels", "key", json!("string")),
        ("labels", "kind", json!("string")),
        ("authors", "isRepeated", json!(true)),
        ("sequel", "comment", json!("The next volume.")),
    ] {
        assert_eq!(field(name)[key], value, "{name} {key}");
    }
    assert_eq!(services["messages"]["google.protobuf.Timestamp"]["isWellKnown"], true);
    assert_eq!(services["enums"]["library.v1.View"]["values"][1]["comment"], "Its title and authors.");
    // A type that no method uses.
    assert_eq!(services["messages"]["google.api.HttpRule"], Value::Null);
}

#[test]
fn page_without_services_says_so() {
    let (rules, _) = library();
    let none = thalweg_openapi::rules::Rules::new(rules.schema(), [""; 0]).unwrap();
    let services = Page::new(&none, &Info::default()).respond(&Method::GET, "/docs/services.json").unwrap();
    let services: Value = serde_json::from_slice(services.body()).unwrap();
    assert_eq!((&services["title"], &services["services"]), (&json!("No services"), &json!([])));
}
