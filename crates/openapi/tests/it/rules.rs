//! Errors in annotations, found when a server starts.

use http::Method;
use thalweg_openapi::rules::BodyMapping;

use crate::declared::{rules, service};

const MESSAGES: &str = r"
    message Author { string name = 1; }
    message Book { string name = 1; Author author = 2; repeated string tags = 3; map<string, Author> others = 4;
        repeated Author authors = 5; google.protobuf.Timestamp written = 6; int32 pages = 7; }
    message Request { Book book = 1; google.protobuf.FieldMask update_mask = 2; string name = 3; }";

#[track_caller]
fn check(rule: &str, expected: &str) {
    let error = rules(&service(MESSAGES, "Request", "Book", &[rule])).unwrap_err().to_string();
    assert_eq!(error, format!("t.S.M0: google.api.http: {expected}"));
}

#[test]
fn invalid_annotation_is_reported_with_its_method() {
    check("body: \"*\"", "missing path; set one of get, put, post, delete, patch and custom");
    check("custom: { kind: \"A B\" path: \"/a\" }", "invalid HTTP method `A B`; use a method, or * for all");
    check("get: \"a\"", "invalid path `a`, column 1: expected a slash at the start");
    check("get: \"/a/{name\"", "invalid path `/a/{name`, column 9: expected a closing brace");
    check("get: \"/{title}\"", "path: t.Request has no field `title`");
    check("get: \"/{book.title}\"", "path: t.Book has no field `title`");
    check("get: \"/{book.name.x}\"", "path: `name` of t.Book is not a message and has no fields");
    check("get: \"/{book.tags.x}\"", "path: `tags` of t.Book is not a message and has no fields");
    check("get: \"/{book.authors.name}\"", "path: `authors` of t.Book is not a message and has no fields");
    check("get: \"/{book.tags}\"", "path: `book.tags` is repeated; use a singular field");
    check("get: \"/{book.others}\"", "path: `book.others` is repeated; use a singular field");
    let message = "is a message; use a string, number, boolean or enum";
    check("get: \"/{book}\"", &format!("path: `book` {message}"));
    check("get: \"/{book.written}\"", &format!("path: `book.written` {message}"));
    check("post: \"/a\" body: \"title\"", "body: t.Request has no field `title`");
    let deep = "must be a field of the message itself, not of one in it";
    check("post: \"/a\" body: \"book.author\"", &format!("body: `book.author` {deep}"));
    check("post: \"/a\" response_body: \"author.name\"", &format!("response_body: `author.name` {deep}"));
    check("post: \"/a\" response_body: \"book\"", "response_body: t.Book has no field `book`");
    check("get: \"/a\" additional_bindings { get: \"/b/{x}\" }", "path: t.Request has no field `x`");
    check(
        "get: \"/a\" additional_bindings { get: \"/b\" additional_bindings { get: \"/c\" } }",
        "an additional binding cannot have additional bindings",
    );
}

#[test]
fn routes_of_the_same_form_conflict() {
    let check = |first: &str, second: &str, expected: Option<&str>| {
        let found = rules(&service(MESSAGES, "Request", "Book", &[first, second]));
        assert_eq!(found.err().map(|error| error.to_string()).as_deref(), expected, "{first} {second}");
    };
    let both = "t.S.M0 and t.S.M1 are both";
    let of = |route: &str| Some(format!("{both} `{route}`; change the path of one"));
    check("get: \"/a/b\"", "get: \"/a/b\"", of("GET /a/b").as_deref());
    check("get: \"/a/{name}\"", "get: \"/a/{book.name=*}\"", of("GET /a/{name}").as_deref());
    check("put: \"/{name=**}:x\"", "put: \"/**:x\"", of("PUT /{name=**}:x").as_deref());
    let any = "custom: { kind: \"*\" path: \"/a\" }";
    check(any, any, of("* /a").as_deref());
    check(any, "get: \"/a\"", None);
    check("get: \"/a\"", "put: \"/a\"", None);
    check("get: \"/a\"", "get: \"/a:x\"", None);
    check("get: \"/*\"", "get: \"/**\"", None);
    let twice = rules(&service(
        MESSAGES,
        "Request",
        "Book",
        &["get: \"/a\" additional_bindings { get: \"/a\" body: \"book\" }"],
    ));
    assert!(twice.unwrap_err().to_string().starts_with("t.S.M0 and t.S.M0 are both `GET /a`"));
}

#[test]
fn binding_has_path_body_and_variables() {
    let of = |rule: &str| {
        let rules = rules(&service(MESSAGES, "Request", "Book", &[rule])).unwrap();
        let [binding] = rules.bindings() else { panic!("{rule}") };
        assert_eq!(binding.path(), "/t.S/M0");
        binding.clone()
    };
    let binding = of("patch: \"/{book.name=books/*}\" body: \"book\" response_body: \"tags\"");
    assert_eq!(binding.http_method(), Some(&Method::PATCH));
    assert_eq!(binding.variables()[0].numbers(), [1, 1]);
    assert_eq!(
        (binding.body(), binding.response_body(), binding.update_mask()),
        (BodyMapping::Field(1), Some(3), Some(2))
    );
    // Only a PATCH of a field with fields has a mask.
    assert_eq!(of("put: \"/a\" body: \"book\"").update_mask(), None);
    assert_eq!(of("patch: \"/a\" body: \"*\"").update_mask(), None);
    assert_eq!(of("patch: \"/a\" body: \"name\"").update_mask(), None);
    assert_eq!(of("custom: { kind: \"*\" path: \"/a\" }").http_method(), None);
}

#[test]
fn unknown_service_is_an_error() {
    let schema = crate::declared::schema(MESSAGES);
    let error = thalweg_openapi::rules::Rules::new(&schema, ["t.Gone"]).unwrap_err();
    assert_eq!(error.to_string(), "unknown service `t.Gone`: not in the descriptors");
}
