//! One call as interceptors see it: [`Call`].

use std::sync::Arc;

use thalweg_core::metadata::MetadataMap;
use thalweg_core::{Extensions, Request, Response, Status};
use thalweg_engine::{CallOptions, Method, ServerAddress};

use super::messages::Messages;

/// A call on its way to the server (on a client) or to the handler (on a server).
#[derive(Debug)]
pub struct Call {
    method: Arc<Method>,
    kind: CallType,
    /// `Some` on a client.
    options: Option<CallOptions>,
    /// `Some` on a client.
    server: Option<Arc<ServerAddress>>,
    request: Request<Messages>,
}

/// The response to a call: initial metadata and messages. A handler's trailing metadata is in the extensions
/// ([`Trailers`](crate::server::Trailers)).
pub type Reply = Response<Messages>;

/// Side of a call that an interceptor runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The caller's side.
    Client,
    /// The handler's side.
    Server,
}

/// gRPC's four call types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallType {
    /// One request, one response.
    Unary,
    /// A stream of requests, one response.
    ClientStreaming,
    /// One request, a stream of responses.
    ServerStreaming,
    /// A stream of requests and a stream of responses.
    BidiStreaming,
}

impl CallType {
    /// Returns true if there is one request instead of a stream.
    pub fn has_one_request(self) -> bool {
        matches!(self, Self::Unary | Self::ServerStreaming)
    }

    /// Returns true if there is one response instead of a stream.
    pub fn has_one_response(self) -> bool {
        matches!(self, Self::Unary | Self::ClientStreaming)
    }
}

impl Call {
    pub(crate) fn new(
        method: Arc<Method>,
        kind: CallType,
        options: Option<CallOptions>,
        server: Option<Arc<ServerAddress>>,
        request: Request<Messages>,
    ) -> Self {
        Self { method, kind, options, server, request }
    }

    /// Returns the side that the interceptor runs on.
    pub fn side(&self) -> Side {
        if self.options.is_some() { Side::Client } else { Side::Server }
    }

    /// Returns the called method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the call type.
    pub fn call_type(&self) -> CallType {
        self.kind
    }

    /// Returns the request's metadata.
    pub fn metadata(&self) -> &MetadataMap {
        self.request.metadata()
    }

    /// Returns the request's metadata for changes.
    pub fn metadata_mut(&mut self) -> &mut MetadataMap {
        self.request.metadata_mut()
    }

    /// Returns the request's extensions, which carry data between interceptors and, on a server, to the handler.
    pub fn extensions(&self) -> &Extensions {
        self.request.extensions()
    }

    /// Returns the request's extensions for changes.
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        self.request.extensions_mut()
    }

    /// Returns the request: metadata, extensions and messages.
    pub fn request(&self) -> &Request<Messages> {
        &self.request
    }

    /// Returns the request for changes.
    pub fn request_mut(&mut self) -> &mut Request<Messages> {
        &mut self.request
    }

    /// Replaces the request's messages, usually by a wrapper around them.
    pub fn map_messages(mut self, map: impl FnOnce(Messages) -> Messages) -> Self {
        self.request = self.request.map(map);
        self
    }

    /// Returns a copy of the call with other messages, for a retry; the extensions are cloned.
    pub fn with_messages(&self, messages: Messages) -> Self {
        let (metadata, extensions) = (self.metadata().clone(), self.extensions().clone());
        let request = Request::from_parts(metadata, extensions, messages);
        Self::new(Arc::clone(&self.method), self.kind, self.options.clone(), self.server.clone(), request)
    }

    /// Returns the call's options; `None` on a server.
    pub fn options(&self) -> Option<&CallOptions> {
        self.options.as_ref()
    }

    /// Returns the call's options for changes; `None` on a server.
    pub fn options_mut(&mut self) -> Option<&mut CallOptions> {
        self.options.as_mut()
    }

    /// Returns the server that the channel calls; `None` on a server.
    pub fn server(&self) -> Option<&ServerAddress> {
        self.server.as_deref()
    }

    pub(crate) fn into_request(self) -> Request<Messages> {
        self.request
    }

    pub(crate) fn into_parts(self) -> (Arc<Method>, Option<CallOptions>, Request<Messages>) {
        (self.method, self.options, self.request)
    }

    /// Runs a function of the request's head.
    pub(super) fn with_head(
        mut self,
        head: &dyn Fn(Request<()>) -> Result<Request<()>, Status>,
    ) -> Result<Self, Status> {
        let (metadata, extensions, messages) = self.request.into_parts();
        let request = head(Request::from_parts(metadata, extensions, ()))?;
        self.request = request.map(|()| messages);
        Ok(self)
    }
}
