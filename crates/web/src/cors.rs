//! CORS: preflight responses, and response headers for pages of other origins.
//! ```
//! use http::{HeaderMap, HeaderValue, Method};
//! use thalweg_web::cors::{Cors, Origins};
//!
//! let page = HeaderValue::from_static("https://example.com");
//! let cors = Cors::default().origins(Origins::These(vec![page.clone()]));
//!
//! let mut request = HeaderMap::new();
//! request.insert("origin", page.clone());
//! request.insert("access-control-request-method", HeaderValue::from_static("POST"));
//! let response = cors.preflight(&Method::OPTIONS, &request).expect("a preflight request");
//! assert_eq!(response.headers()["access-control-allow-origin"], page);
//! ```

use std::time::Duration;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

/// Permissions of pages from other origins.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Cors {
    /// Allowed origins; none by default.
    pub origins: Origins,
    /// Allowed methods. The default is GET and POST, which Connect and gRPC-Web use, and HEAD, PUT, PATCH and DELETE
    /// for annotations. A method of an annotation's `custom` pattern has to be listed.
    pub methods: Vec<Method>,
    /// Allowed request headers besides those of the protocols, for example `authorization`. Each may also come as
    /// transcoded metadata: `grpc-metadata-authorization`.
    pub request_headers: RequestHeaders,
    /// Exposed response headers besides those of the protocols. Trailing metadata of these names is exposed too: `x-a`
    /// as `trailer-x-a` of Connect and `grpc-trailer-x-a` of transcoded calls.
    pub response_headers: Vec<HeaderName>,
    /// Whether pages may send credentials such as cookies. Must not be combined with [`Origins::Any`], which would let
    /// every page act as its reader: the server then fails to start with
    /// [`WebError::Credentials`](crate::WebError::Credentials).
    pub allows_credentials: bool,
    /// Time that browsers cache preflight responses; 2 hours by default, the maximum of some browsers.
    pub max_age: Option<Duration>,
}

/// Origins whose pages may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origins {
    /// All origins.
    Any,
    /// These origins, for example `https://example.com`, with the port unless it is the scheme's default.
    These(Vec<HeaderValue>),
}

/// Request headers that pages may send besides those of the protocols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestHeaders {
    /// All requested headers.
    Any,
    /// These headers.
    These(Vec<HeaderName>),
}

impl Default for Cors {
    fn default() -> Cors {
        Cors {
            origins: Origins::These(Vec::new()),
            methods: DEFAULT_METHODS.to_vec(),
            request_headers: RequestHeaders::These(Vec::new()),
            response_headers: Vec::new(),
            allows_credentials: false,
            max_age: Some(Duration::from_secs(2 * 60 * 60)),
        }
    }
}

impl Cors {
    /// Sets [`origins`](field@Self::origins).
    pub fn origins(mut self, origins: Origins) -> Self {
        self.origins = origins;
        self
    }

    /// Sets [`methods`](field@Self::methods).
    pub fn methods(mut self, methods: Vec<Method>) -> Self {
        self.methods = methods;
        self
    }

    /// Sets [`request_headers`](field@Self::request_headers).
    pub fn request_headers(mut self, request_headers: RequestHeaders) -> Self {
        self.request_headers = request_headers;
        self
    }

    /// Sets [`response_headers`](field@Self::response_headers).
    pub fn response_headers(mut self, response_headers: Vec<HeaderName>) -> Self {
        self.response_headers = response_headers;
        self
    }

    /// Sets [`allows_credentials`](field@Self::allows_credentials).
    pub fn allows_credentials(mut self, allows_credentials: bool) -> Self {
        self.allows_credentials = allows_credentials;
        self
    }

    /// Sets [`max_age`](field@Self::max_age).
    pub fn max_age(mut self, max_age: Option<Duration>) -> Self {
        self.max_age = max_age;
        self
    }
}

const DEFAULT_METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Request headers of Connect and gRPC-Web clients.
const REQUEST_HEADERS: &str = "content-type, content-encoding, connect-protocol-version, connect-timeout-ms, \
     connect-content-encoding, connect-accept-encoding, grpc-timeout, grpc-encoding, grpc-accept-encoding, x-grpc-web, \
     x-user-agent";

/// Response headers that these clients read.
const RESPONSE_HEADERS: &str = "content-encoding, connect-content-encoding, grpc-encoding, grpc-status, grpc-message, \
     grpc-status-details-bin";

impl Cors {
    /// Returns the response to a preflight request; `None` for any other request.
    pub fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<Response<()>> {
        let requested = headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
        let origin = headers.get(ORIGIN).filter(|_| *method == Method::OPTIONS)?;
        let mut response = Response::new(());
        let allowed = response.headers_mut();
        allowed.insert(
            VARY,
            HeaderValue::from_static("origin, access-control-request-method, access-control-request-headers"),
        );
        let is_method_allowed = self.methods.iter().any(|method| requested == method.as_str());
        if !is_method_allowed || !self.allow_origin(origin, allowed) {
            *response.status_mut() = StatusCode::FORBIDDEN;
            return Some(response);
        }
        // A list of tokens is a valid header value.
        let mut insert = |name: HeaderName, value: Option<HeaderValue>| {
            value.and_then(|value| allowed.insert(name, value));
        };
        let methods: Vec<&str> = self.methods.iter().map(Method::as_str).collect();
        insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::try_from(methods.join(", ")).ok());
        let request_headers = match &self.request_headers {
            RequestHeaders::Any => headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned(),
            RequestHeaders::These(these) => {
                let both = these.iter().flat_map(|name| [name.to_string(), format!("grpc-metadata-{name}")]);
                list(REQUEST_HEADERS, both)
            }
        };
        insert(ACCESS_CONTROL_ALLOW_HEADERS, request_headers);
        insert(ACCESS_CONTROL_MAX_AGE, self.max_age.map(|max_age| max_age.as_secs().into()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        Some(response)
    }

    /// Adds the headers that expose a response to the page that made the request.
    pub fn allow(&self, request: &HeaderMap, response: &mut HeaderMap) {
        if self.origins != Origins::Any {
            // Without it, a cache would serve one page's response to another page.
            response.append(VARY, HeaderValue::from_static("origin"));
        }
        let Some(origin) = request.get(ORIGIN) else { return };
        if !self.allow_origin(origin, response) {
            return;
        }
        let all_ways = self
            .response_headers
            .iter()
            .flat_map(|name| [name.to_string(), format!("trailer-{name}"), format!("grpc-trailer-{name}")]);
        if let Some(exposed) = list(RESPONSE_HEADERS, all_ways) {
            response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }

    /// Returns whether every page could act as its reader.
    pub(crate) fn is_for_all_with_credentials(&self) -> bool {
        self.allows_credentials && self.origins == Origins::Any
    }

    fn allow_origin(&self, origin: &HeaderValue, response: &mut HeaderMap) -> bool {
        let allowed = match &self.origins {
            Origins::Any => HeaderValue::from_static("*"),
            Origins::These(these) if these.contains(origin) => {
                if self.allows_credentials {
                    response.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
                }
                origin.clone()
            }
            Origins::These(_) => return false,
        };
        response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        true
    }
}

/// Returns a list of names: those of `always`, then `more`.
fn list(always: &str, more: impl Iterator<Item = String>) -> Option<HeaderValue> {
    let list = more.fold(always.to_owned(), |list, name| format!("{list}, {name}"));
    HeaderValue::try_from(list).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{header_lines, headers};

    fn cors() -> Cors {
        Cors::default().origins(Origins::These(vec![HeaderValue::from_static("https://a.b")]))
    }

    const METHODS: &str = "access-control-allow-methods: GET, HEAD, POST, PUT, PATCH, DELETE";
    const VARIES: &str = "vary: origin, access-control-request-method, access-control-request-headers";

    #[test]
    fn preflights() {
        const POST: (&str, &str) = ("access-control-request-method", "POST");
        const ORIGIN: (&str, &str) = ("origin", "https://a.b");
        let check = |cors: &Cors, list: &[(&str, &str)], status: u16, expected: &str| {
            let response = cors.preflight(&Method::OPTIONS, &headers(list)).unwrap();
            assert_eq!(
                (response.status().as_u16(), header_lines(response.headers())),
                (status, expected.to_owned())
            );
        };
        let allowed = |headers: &str, origin: &str| {
            format!(
                "access-control-allow-headers: {headers}\n{METHODS}\n\
                 access-control-allow-origin: {origin}\naccess-control-max-age: 7200\n{VARIES}"
            )
        };
        check(&cors(), &[ORIGIN, POST], 204, &allowed(REQUEST_HEADERS, "https://a.b"));
        check(&cors(), &[("origin", "https://a.c"), POST], 403, VARIES);
        check(&cors(), &[("origin", "null"), POST], 403, VARIES);
        let patch = ("access-control-request-method", "PATCH");
        check(&cors(), &[ORIGIN, patch], 204, &allowed(REQUEST_HEADERS, "https://a.b"));
        check(&cors(), &[ORIGIN, ("access-control-request-method", "PURGE")], 403, VARIES);
        check(&Cors::default(), &[ORIGIN, POST], 403, VARIES);
        let any = cors().origins(Origins::Any).allows_credentials(true);
        check(&any, &[ORIGIN, POST], 204, &allowed(REQUEST_HEADERS, "*"));
        let authorization = RequestHeaders::These(vec![http::header::AUTHORIZATION]);
        let with = cors().request_headers(authorization);
        let expected = &format!("{REQUEST_HEADERS}, authorization, grpc-metadata-authorization");
        let expected = allowed(expected, "https://a.b");
        check(&with, &[ORIGIN, POST], 204, &expected);
        let all = cors().request_headers(RequestHeaders::Any);
        let preflight_header = ("access-control-request-headers", "x-a,x-b");
        check(&all, &[ORIGIN, POST, preflight_header], 204, &allowed("x-a,x-b", "https://a.b"));
        let expected = format!("{METHODS}\naccess-control-allow-origin: https://a.b\n");
        let short = cors().request_headers(RequestHeaders::Any).max_age(None);
        check(&short, &[ORIGIN, POST], 204, &format!("{expected}{VARIES}"));
        let expected = format!("access-control-allow-credentials: true\n{expected}{VARIES}");
        let expected =
            expected.replace("true\n", &format!("true\naccess-control-allow-headers: {REQUEST_HEADERS}\n"));
        let credentials = cors().allows_credentials(true).max_age(None);
        check(&credentials, &[ORIGIN, POST], 204, &expected);
    }

    #[test]
    fn other_requests_are_not_preflights() {
        let check = |method: Method, list: &[(&str, &str)]| {
            assert!(cors().preflight(&method, &headers(list)).is_none(), "{method} {list:?}");
        };
        let (origin, preflight_header) =
            (("origin", "https://a.b"), ("access-control-request-method", "POST"));
        check(Method::POST, &[origin, preflight_header]);
        check(Method::OPTIONS, &[origin]);
        check(Method::OPTIONS, &[preflight_header]);
    }

    #[test]
    fn response_headers_allow_configured_origins() {
        let check = |cors: &Cors, origin: Option<&str>, expected: &str| {
            let request: Vec<(&str, &str)> = origin.into_iter().map(|origin| ("origin", origin)).collect();
            let mut response = headers(&[("vary", "accept-encoding")]);
            cors.allow(&headers(&request), &mut response);
            assert_eq!(header_lines(&response), expected);
        };
        let response_for = |origin: &str, more: &str| {
            format!(
                "access-control-allow-origin: {origin}\naccess-control-expose-headers: {RESPONSE_HEADERS}{more}\n\
                 vary: accept-encoding"
            )
        };
        check(&cors(), None, "vary: accept-encoding\nvary: origin");
        check(&cors(), Some("https://a.c"), "vary: accept-encoding\nvary: origin");
        check(&cors(), Some("https://a.b"), &format!("{}\nvary: origin", response_for("https://a.b", "")));
        let any = cors().origins(Origins::Any);
        check(&any, Some("https://a.c"), &response_for("*", ""));
        let more = any.response_headers(vec![HeaderName::from_static("x-a")]);
        check(&more, Some("https://a.c"), &response_for("*", ", x-a, trailer-x-a, grpc-trailer-x-a"));
    }
}
