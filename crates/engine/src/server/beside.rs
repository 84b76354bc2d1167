//! What a server's port has beside gRPC: [`Beside`].

use std::fmt;
use std::sync::Arc;

use super::dispatch::{Handler, ServerMethod, StartsOn};
use super::http1::Http1;
use super::raw::RawHandler;
use crate::grpc::content_type;
use crate::options::ServiceOptions;

/// What a server's port has beside gRPC: requests over HTTP/2 that are not gRPC, and connections of HTTP/1.1.
///
/// gRPC's own way stays as it is. Which of the two versions a client speaks is told by ALPN, or by its first bytes;
/// nothing is sent before those.
#[derive(Clone)]
pub struct Beside {
    pub(super) requests: Arc<ServerMethod>,
    /// What has a content subtype of gRPC's goes there, too.
    takes_subtypes: bool,
    pub(super) http1: Arc<dyn Http1>,
}

impl Beside {
    /// Has `handler` answer requests over HTTP/2 that are not gRPC, and `http1` serve connections of HTTP/1.1.
    pub fn new(handler: impl RawHandler, http1: Arc<dyn Http1>) -> Self {
        // What is called there has a name of its own: without one, it is not measured.
        let requests = ServerMethod::new("", ServiceOptions::default(), Handler::raw(handler));
        Self { requests: Arc::new(requests), takes_subtypes: false, http1 }
    }

    /// Has the handler answer gRPC requests whose messages are no wire bytes, too: all with a content subtype, `json`
    /// of `application/grpc+json`, but `proto`, to methods that do not [say](ServerMethod::with_content_subtype) what
    /// their messages are.
    #[must_use]
    pub fn with_content_subtypes(mut self) -> Self {
        self.takes_subtypes = true;
        self
    }

    /// Whether a gRPC request with this content type, to this method, goes there.
    pub(super) fn takes(&self, method: &ServerMethod, content_type: &[u8]) -> bool {
        self.takes_subtypes
            && method.content_subtype.is_empty()
            && method.handler.starts_on != StartsOn::RawRequest
            && content_type::subtype(content_type)
                .is_some_and(|subtype| !subtype.is_empty() && !subtype.eq_ignore_ascii_case(b"proto"))
    }
}

impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").field("takes_subtypes", &self.takes_subtypes).finish_non_exhaustive()
    }
}
