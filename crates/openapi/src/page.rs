//! [`Page`]: the documentation page of a server's services.
//!
//! It shows services, methods, types and comments. It calls methods from the browser with Connect and shows the
//! equivalent command line. The page consists of three files and the services as JSON, all from the server itself. Its
//! policy forbids browsers to load anything else.

mod page_data;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};

use crate::info::Info;
use crate::rules::Rules;
use page_data::PageData;

const HTML: &str = include_str!("../page/page.html");
const STYLE: &str = include_str!("../page/page.css");
const ICON: &str = include_str!("../page/icon.svg");
/// Script parts, each with its own task; none depends on a later one.
const SCRIPTS: [&str; 4] = [
    include_str!("../page/connect.js"),
    include_str!("../page/lines.js"),
    include_str!("../page/types.js"),
    include_str!("../page/page.js"),
];

/// Allows scripts, styles and requests of this server only, and no embedding in frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page and its parts, at `/docs`, `/docs/page.js`, etc. Creating it is expensive; answering requests is not.
///
/// ```
/// use http::Method;
/// use thalweg_protobuf::{Schema, sources};
/// use thalweg_openapi::Info;
/// use thalweg_openapi::Page;
/// use thalweg_openapi::rules::Rules;
///
/// # let greet = "syntax = 'proto3'; service Greeter { rpc Greet(M) returns (M); } message M { string name = 1; }";
/// # let set = sources::compile(&["greet.proto"], |_| Some(greet.to_owned()))?;
/// let schema = Schema::from_descriptor_set(&set)?;
/// let page = Page::new(&Rules::new(&schema, ["Greeter"])?, &Info::default());
/// let response = page.respond(&Method::GET, "/docs").ok_or("there is no page")?;
/// assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
/// assert!(page.respond(&Method::GET, "/docs/other").is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Page {
    parts: [Part; 5],
}

#[derive(Clone, Debug)]
struct Part {
    path: &'static str,
    content_type: HeaderValue,
    content: Bytes,
}

impl Page {
    /// Creates the page of the services of these rules, with the title, texts and comments of `info`.
    ///
    /// # Panics
    ///
    /// Never panics: serialising text cannot fail.
    pub fn new(rules: &Rules, info: &Info) -> Page {
        let services = serde_json::to_vec(&PageData::new(rules, info)).expect("all keys are strings");
        let part = |path, content_type, content| Part {
            path,
            content_type: HeaderValue::from_static(content_type),
            content,
        };
        let text = |text: &'static str| Bytes::from_static(text.as_bytes());
        Page {
            parts: [
                part("/docs", "text/html; charset=utf-8", text(HTML)),
                part("/docs/page.css", "text/css; charset=utf-8", text(STYLE)),
                part("/docs/page.js", "text/javascript; charset=utf-8", script().into()),
                part("/docs/icon.svg", "image/svg+xml", text(ICON)),
                part("/docs/services.json", "application/json", services.into()),
            ],
        }
    }

    /// Whether the page or one of its parts is at this path.
    pub fn has_path(&self, path: &str) -> bool {
        self.parts.iter().any(|part| part.path == path)
    }

    /// Returns the response to a request for the page or one of its parts, and `None` for other paths. HEAD is
    /// answered like GET; the caller must omit the body.
    pub fn respond(&self, method: &Method, path: &str) -> Option<Response<Bytes>> {
        let part = self.parts.iter().find(|part| part.path == path)?;
        let mut response = Response::new(part.content.clone());
        let mut set_header = |name: HeaderName, value: &'static str| {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        };
        if !matches!(*method, Method::GET | Method::HEAD) {
            set_header(ALLOW, "GET, HEAD");
            *response.body_mut() = Bytes::new();
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            return Some(response);
        }
        set_header(CONTENT_SECURITY_POLICY, POLICY);
        set_header(X_CONTENT_TYPE_OPTIONS, "nosniff");
        set_header(REFERRER_POLICY, "no-referrer");
        // A later server at this address may be a different one.
        set_header(CACHE_CONTROL, "no-cache");
        response.headers_mut().insert(CONTENT_TYPE, part.content_type.clone());
        Some(response)
    }
}

/// Returns all parts as one file, which shares no names with other scripts.
fn script() -> String {
    format!("(() => {{\n\"use strict\";\n{}\n}})();\n", SCRIPTS.join("\n"))
}
