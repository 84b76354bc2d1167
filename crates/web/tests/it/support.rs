//! Schemas with annotations, and requests to them.

use std::borrow::Cow;
use std::fmt::Write as _;

use bytes::Bytes;
use http::Method;
use thalweg_protobuf::{Schema, json, sources};
use thalweg_web::transcoding::{
    Content, Found, RequestError, RequestOptions, Router, Rules, RulesError, Template, request,
};

/// The `.proto` files of `tests/proto/google/api`, by their names.
pub(crate) fn google_api(name: &str) -> Option<String> {
    let text = match name {
        "google/api/annotations.proto" => include_str!("../proto/google/api/annotations.proto"),
        "google/api/resources.proto" => include_str!("../proto/google/api/resources.proto"),
        _ => return None,
    };
    Some(text.to_owned())
}

/// What a test declares, in the package `t`.
pub(crate) fn schema(declarations: &str) -> Schema {
    Schema::from_descriptor_set(&descriptors(declarations)).unwrap()
}

/// The same as a `FileDescriptorSet`.
pub(crate) fn descriptors(declarations: &str) -> Vec<u8> {
    let text = format!(
        r#"syntax = "proto3"; package t;
        import "google/api/annotations.proto";
        import "google/api/resources.proto";
        import "google/protobuf/duration.proto";
        import "google/protobuf/empty.proto";
        import "google/protobuf/field_mask.proto";
        import "google/protobuf/struct.proto";
        import "google/protobuf/timestamp.proto";
        import "google/protobuf/wrappers.proto";
        {declarations}"#
    );
    let read = move |name: &str| if name == "t.proto" { Some(text.clone()) } else { google_api(name) };
    sources::compile(&["t.proto"], read).unwrap()
}

/// The rules of the service `t.S`.
pub(crate) fn rules(declarations: &str) -> Result<Rules, RulesError> {
    Rules::new(&schema(declarations), ["t.S"])
}

pub(crate) fn router(declarations: &str) -> Router {
    Router::new(rules(declarations).unwrap())
}

/// A method for each rule, which is the inside of its annotation, and the messages that they have.
pub(crate) fn service(messages: &str, input: &str, output: &str, rules: &[&str]) -> String {
    let mut methods = String::new();
    for (index, rule) in rules.iter().enumerate() {
        let option = format!("option (google.api.http) = {{ {rule} }};");
        writeln!(methods, "rpc M{index}({input}) returns ({output}) {{ {option} }}").unwrap();
    }
    format!("{messages} service S {{ {methods} }}")
}

/// The template that a path leads to, and its variables: `/a/{x} x=1 y=2`; `404` or `405 GET PUT`.
pub(crate) fn found(router: &Router, method: &str, path: &str) -> String {
    match router.find(&method.parse::<Method>().unwrap(), path) {
        Found::NotFound => "404".to_owned(),
        Found::MethodNotAllowed { allowed } => {
            let allowed: Vec<&str> = allowed.into_iter().map(Method::as_str).collect();
            format!("405 {}", allowed.join(" "))
        }
        Found::Route(route) => {
            let template: &Template = route.binding().template();
            let variables = route.variables().map(|(variable, _, value)| {
                let value = value.unwrap_or_else(|error| Cow::Owned(format!("<{error}>")));
                format!(" {}={value}", variable.field_path)
            });
            format!("{template}{}", variables.collect::<String>())
        }
    }
}

/// The wire bytes of a request: `target` is path and query.
pub(crate) fn to_wire(
    router: &Router,
    method: &str,
    target: &str,
    body: &Content,
    options: &RequestOptions,
) -> Result<Vec<u8>, RequestError> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let Found::Route(route) = router.find(&method.parse::<Method>().unwrap(), path) else {
        panic!("{method} {target}: {}", found(router, method, path));
    };
    // Something stands there already.
    let mut wire = vec![1, 2, 3];
    let result = request::to_wire(router.rules(), &route, query, body, options, &mut wire);
    let appended = wire.split_off(3);
    assert_eq!(wire, [1, 2, 3]);
    assert!(result.is_ok() || appended.is_empty());
    result.map(|()| appended)
}

/// The JSON of the message that a request with a body of JSON becomes.
pub(crate) fn to_json(
    router: &Router,
    method: &str,
    target: &str,
    body: &str,
    options: &RequestOptions,
) -> Result<String, RequestError> {
    let content = Content {
        content_type: "application/json".to_owned(),
        data: Bytes::copy_from_slice(body.as_bytes()),
    };
    let wire = to_wire(router, method, target, &content, options)?;
    let path = target.split('?').next().unwrap();
    let Found::Route(route) = router.find(&method.parse::<Method>().unwrap(), path) else { unreachable!() };
    // Decoded first: in the order of the schema.
    let message = thalweg_protobuf::Message::decode(router.rules().input(route.binding()), wire).unwrap();
    Ok(json::from_message(message.as_ref()).unwrap())
}
