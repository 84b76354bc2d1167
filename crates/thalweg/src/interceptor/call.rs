//! One call as interceptors see it: [`Call`].

use std::sync::Arc;

use thalweg_engine::{CallOptions, Method, ServerAddress};
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Request, Response, Status};

use super::messages::Messages;

/// A call on its way in: to the server at a client, to the handler at a server.
#[derive(Debug)]
pub struct Call {
    method: Arc<Method>,
    kind: CallType,
    /// At a client.
    options: Option<CallOptions>,
    /// At a client.
    server: Option<Arc<ServerAddress>>,
    request: Request<Messages>,
}

/// What a call is answered with: initial metadata and messages. Trailing metadata of a handler's is in the extensions
/// ([`Trailers`](crate::server::Trailers)).
pub type Reply = Response<Messages>;

/// Which side of a call an interceptor is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// It calls.
    Client,
    /// It is called.
    Server,
}

/// gRPC's four kinds of calls.
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
    /// Whether there is one request, and not a stream of them.
    pub fn has_one_request(self) -> bool {
        matches!(self, Self::Unary | Self::ServerStreaming)
    }

    /// Whether there is one response, and not a stream of them.
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

    /// Which side this is.
    pub fn side(&self) -> Side {
        if self.options.is_some() { Side::Client } else { Side::Server }
    }

    /// What is called.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Which of the four kinds of calls it is.
    pub fn call_type(&self) -> CallType {
        self.kind
    }

    /// The metadata of the request.
    pub fn metadata(&self) -> &MetadataMap {
        self.request.metadata()
    }

    /// The metadata of the request, to be changed.
    pub fn metadata_mut(&mut self) -> &mut MetadataMap {
        self.request.metadata_mut()
    }

    /// What interceptors tell each other and, at a server, the handler.
    pub fn extensions(&self) -> &Extensions {
        self.request.extensions()
    }

    /// As [`extensions`](Self::extensions), to be changed.
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        self.request.extensions_mut()
    }

    /// The request: metadata, extensions and messages.
    pub fn request(&self) -> &Request<Messages> {
        &self.request
    }

    /// The request, to be changed.
    pub fn request_mut(&mut self) -> &mut Request<Messages> {
        &mut self.request
    }

    /// Puts other messages in place of the request's, mostly the same ones looked at.
    pub fn map_messages(mut self, map: impl FnOnce(Messages) -> Messages) -> Self {
        self.request = self.request.map(map);
        self
    }

    /// The same call with other messages, for one that is made again; extensions are cloned.
    pub fn with_messages(&self, messages: Messages) -> Self {
        let (metadata, extensions) = (self.metadata().clone(), self.extensions().clone());
        let request = Request::from_parts(metadata, extensions, messages);
        Self::new(Arc::clone(&self.method), self.kind, self.options.clone(), self.server.clone(), request)
    }

    /// How the call is made; at a client only.
    pub fn options(&self) -> Option<&CallOptions> {
        self.options.as_ref()
    }

    /// How the call is made, to be changed; at a client only.
    pub fn options_mut(&mut self) -> Option<&mut CallOptions> {
        self.options.as_mut()
    }

    /// Whom the channel calls; at a client only.
    pub fn server(&self) -> Option<&ServerAddress> {
        self.server.as_deref()
    }

    pub(crate) fn into_request(self) -> Request<Messages> {
        self.request
    }

    pub(crate) fn into_parts(self) -> (Arc<Method>, Option<CallOptions>, Request<Messages>) {
        (self.method, self.options, self.request)
    }

    /// Has a function see the request without its messages, as tonic's interceptors do.
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
