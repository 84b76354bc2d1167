//! Pages and errors that belong to no call.

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};
use thalweg_engine::Code;
use thalweg_openapi::rules::Rules;
use thalweg_openapi::{Info, Page, document};

use super::config::PageOptions;
use super::context::Context;
use crate::body::Body;
use crate::content_type::application;

const ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The server's own pages.
#[derive(Debug)]
pub(super) struct Pages {
    /// Text and JSON.
    front: Option<(Bytes, Bytes)>,
    openapi: Option<Bytes>,
    docs: Option<Page>,
}

const OPENAPI: &str = "/openapi.json";

impl Pages {
    /// `info` is further content; the format of names and enums comes from the context. Without rules there are no
    /// [pages of them](PageOptions::needs_rules).
    pub(super) fn new(
        options: PageOptions,
        front: Option<(Bytes, Bytes)>,
        context: &Context,
        rules: Option<&Rules>,
        info: Info,
    ) -> Pages {
        let print = &context.options.print;
        let info = info.schema_names(print.schema_names).enum_numbers(print.enum_numbers);
        let openapi = rules.filter(|_| options.openapi).map(|rules| document(rules, &info).into());
        let docs = rules.filter(|_| options.docs).map(|rules| Page::new(rules, &info));
        Pages { front, openapi, docs }
    }

    /// Returns whether there is a page at this path.
    pub(super) fn has_path(&self, path: &str) -> bool {
        self.front.is_some() && path == "/"
            || self.openapi.is_some() && path == OPENAPI
            || self.docs.as_ref().is_some_and(|docs| docs.has_path(path))
    }

    /// Returns the page at this path.
    pub(super) fn find(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
        if !self.has_path(path) {
            return None;
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Some(method_not_allowed(headers, HeaderValue::from_static("GET, HEAD")));
        }
        if let Some(part) = self.docs.as_ref().and_then(|docs| docs.respond(method, path)) {
            return Some(part.map(Body::full));
        }
        let (content_type, page) = match (path, &self.openapi, &self.front) {
            (OPENAPI, Some(document), _) => (JSON, document),
            (_, _, Some((_, json))) if wants_json(headers) => (JSON, json),
            (_, _, Some((text, _))) => (TEXT, text),
            _ => return None,
        };
        let mut response = Response::new(Body::full(page.clone()));
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        Some(response)
    }
}

/// 404 for an unknown path.
pub(super) fn not_found(path: &str, headers: &HeaderMap) -> Response<Body> {
    error(StatusCode::NOT_FOUND, Code::NotFound, &format!("nothing found at {path}"), headers)
}

/// 405 for a path that supports other HTTP methods.
pub(super) fn method_not_allowed(headers: &HeaderMap, allow: HeaderValue) -> Response<Body> {
    let why = format!("this path accepts only {}", String::from_utf8_lossy(allow.as_bytes()));
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, Code::Unimplemented, &why, headers);
    response.headers_mut().insert(ALLOW, allow);
    response
}

/// 415 for a path that accepts other content types.
pub(super) fn unsupported_media_type(headers: &HeaderMap, accepted: &str) -> Response<Body> {
    let why = format!("unsupported content type; this path accepts {accepted}");
    let mut response = error(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::Unimplemented, &why, headers);
    if let Ok(accepted) = HeaderValue::try_from(accepted) {
        response.headers_mut().insert(ACCEPT_POST, accepted);
    }
    response
}

/// Returns an error as a `google.rpc.Status` if the client reads JSON, otherwise as a line of text. Connect clients use
/// the HTTP status if the code is a number.
pub(super) fn error(status: StatusCode, code: Code, why: &str, headers: &HeaderMap) -> Response<Body> {
    let (content_type, body) = if wants_json(headers) {
        let details: [Value; 0] = [];
        (JSON, json!({ "code": code.number(), "message": why, "details": details }).to_string())
    } else {
        (TEXT, format!("{why}\n"))
    };
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Returns whether the client accepts or sends JSON.
fn wants_json(headers: &HeaderMap) -> bool {
    let is_accepted = headers.get_all(ACCEPT).iter().any(|accept| {
        let mut ranges = accept.as_bytes().split(|byte| *byte == b',');
        ranges.any(|range| application(range.trim_ascii()).is_some_and(is_json))
    });
    let sent = headers.get(CONTENT_TYPE).and_then(|sent| application(sent.as_bytes()));
    is_accepted || sent.is_some_and(is_json)
}

fn is_json(subtype: &str) -> bool {
    subtype.eq_ignore_ascii_case("json")
}
