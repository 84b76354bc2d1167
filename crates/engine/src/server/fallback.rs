//! Fallback for non-gRPC traffic on a server's port: [`Fallback`].

use std::fmt;
use std::sync::Arc;

use super::dispatch::{Handler, ServerMethod, StartsOn};
use super::http1::Http1;
use super::raw::RawHandler;
use crate::grpc::content_type;
use crate::options::ServiceOptions;

/// Fallback for HTTP/2 requests that are not gRPC, and for HTTP/1.1 connections.
///
/// It does not change how gRPC is served. The HTTP version follows from ALPN or the client's first bytes; the server
/// sends nothing before those.
#[derive(Clone)]
pub struct Fallback {
    pub(super) requests: Arc<ServerMethod>,
    /// gRPC requests with a content subtype use the fallback, too.
    takes_subtypes: bool,
    pub(super) http1: Arc<dyn Http1>,
}

impl Fallback {
    /// Creates a fallback: `handler` for HTTP/2 requests that are not gRPC, and `http1` for HTTP/1.1 connections.
    pub fn new(handler: impl RawHandler, http1: Arc<dyn Http1>) -> Self {
        // The fallback names its calls itself. Calls without a name are not measured.
        let requests = ServerMethod::new("", ServiceOptions::default(), Handler::raw(handler));
        Self { requests: Arc::new(requests), takes_subtypes: false, http1 }
    }

    /// Also passes gRPC requests with a content subtype other than `proto` to the handler, such as
    /// `application/grpc+json`. Methods with a [content subtype](ServerMethod::with_content_subtype) of their own are
    /// excluded.
    #[must_use]
    pub fn with_content_subtypes(mut self) -> Self {
        self.takes_subtypes = true;
        self
    }

    /// Returns whether the fallback handles a gRPC request to `method` with this content type.
    pub(super) fn takes(&self, method: &ServerMethod, content_type: &[u8]) -> bool {
        self.takes_subtypes
            && method.content_subtype.is_empty()
            && method.handler.starts_on != StartsOn::RawRequest
            && content_type::subtype(content_type)
                .is_some_and(|subtype| !subtype.is_empty() && !subtype.eq_ignore_ascii_case(b"proto"))
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback").field("takes_subtypes", &self.takes_subtypes).finish_non_exhaustive()
    }
}
