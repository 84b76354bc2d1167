//! Requests to annotated schemas.

use std::borrow::Cow;

use bytes::Bytes;
use http::Method;
use thalweg_protobuf::json;
use thalweg_web::transcoding::{Content, Lookup, RequestError, RequestOptions, Router, Template, request};

use crate::declared::rules;

pub(crate) fn router(declarations: &str) -> Router {
    Router::new(rules(declarations).unwrap())
}

/// Returns the template of a path and its variables, `/a/{x} x=1 y=2`, or else `404` or `405 GET PUT`.
pub(crate) fn found(router: &Router, method: &str, path: &str) -> String {
    match router.find(&method.parse::<Method>().unwrap(), path) {
        Lookup::NotFound => "404".to_owned(),
        Lookup::MethodNotAllowed { allowed } => {
            let allowed: Vec<&str> = allowed.into_iter().map(Method::as_str).collect();
            format!("405 {}", allowed.join(" "))
        }
        Lookup::Route(route) => {
            let template: &Template = route.binding().template();
            let variables = route.variables().map(|(variable, _, value)| {
                let value = value.unwrap_or_else(|error| Cow::Owned(format!("<{error}>")));
                format!(" {}={value}", variable.field_path)
            });
            format!("{template}{}", variables.collect::<String>())
        }
    }
}

/// Returns the wire bytes of a request; `target` is path and query.
pub(crate) fn to_wire(
    router: &Router,
    method: &str,
    target: &str,
    body: &Content,
    options: &RequestOptions,
) -> Result<Vec<u8>, RequestError> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let Lookup::Route(route) = router.find(&method.parse::<Method>().unwrap(), path) else {
        panic!("{method} {target}: {}", found(router, method, path));
    };
    // The buffer is not empty.
    let mut wire = vec![1, 2, 3];
    let result = request::to_wire(router.rules(), &route, query, body, options, &mut wire);
    let appended = wire.split_off(3);
    assert_eq!(wire, [1, 2, 3]);
    assert!(result.is_ok() || appended.is_empty());
    result.map(|()| appended)
}

/// Returns the JSON of the message for a request with a JSON body.
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
    let Lookup::Route(route) = router.find(&method.parse::<Method>().unwrap(), path) else { unreachable!() };
    // Decoding first gives the order of the schema.
    let message = thalweg_protobuf::Message::decode(router.rules().input(route.binding()), wire).unwrap();
    Ok(json::from_message(message.as_ref()).unwrap())
}
