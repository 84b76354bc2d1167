//! Responses to non-gRPC requests.

use bytes::Bytes;
use thalweg_http2::{Block, Connection, FieldList, Indexing, StreamId};

use crate::grpc::request::Refusal;

/// A complete HTTP response.
#[derive(Clone, Debug)]
pub(super) struct HttpErrorResponse {
    status: &'static str,
    body: &'static str,
    /// The `allow` field of 405.
    allow: Option<&'static str>,
    headers_only: bool,
}

const FRONT_PAGE: &str = concat!(
    "This is a gRPC server (Thalweg ",
    env!("CARGO_PKG_VERSION"),
    "). Call its methods with a gRPC client over HTTP/2.\n"
);

impl HttpErrorResponse {
    /// Creates a line of text for browsers at `/`, and an error status for everything else.
    pub(super) fn to(refusal: &Refusal, method: Option<&[u8]>, path: &[u8]) -> Self {
        let headers_only = method == Some(b"HEAD");
        let (status, body, allow) = match (method, path, refusal) {
            (Some(b"GET" | b"HEAD"), b"/", _) => ("200", FRONT_PAGE, None),
            (_, path, _) if !path.starts_with(b"/") => ("400", "The path must begin with a slash.\n", None),
            (_, _, Refusal::MethodNotAllowed) => ("405", "gRPC calls are POST requests.\n", Some("POST")),
            _ => ("415", "gRPC calls have the content type application/grpc.\n", None),
        };
        Self { status, body, allow, headers_only }
    }

    /// Creates the response to a malformed request: its path or a field is invalid (RFC 9110 §15.5.1).
    pub(super) fn malformed(method: Option<&[u8]>) -> Self {
        let body = "The request is malformed: its path, or one of its headers.\n";
        Self { status: "400", body, allow: None, headers_only: method == Some(b"HEAD") }
    }

    pub(super) fn send(&self, http2: &mut Connection, stream: StreamId) {
        let mut fields = FieldList::new();
        let mut push =
            |name: &str, value: &str| fields.push(name.as_bytes(), value.as_bytes(), Indexing::Literal);
        push(":status", self.status);
        push("content-type", "text/plain; charset=utf-8");
        push("content-length", &self.body.len().to_string());
        if let Some(allow) = self.allow {
            push("allow", allow);
        }
        // A stream that has ended needs no response.
        let sent = http2.send_headers(stream, Block { fixed: None, extra: &fields }, self.headers_only);
        if sent.is_ok() && !self.headers_only {
            let _ = http2.send_data(stream, [Bytes::from_static(self.body.as_bytes())], true);
        }
    }
}
