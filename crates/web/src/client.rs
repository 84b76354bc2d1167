//! Connect and gRPC-Web clients: [`Client`].
//!
//! For use behind proxies without trailers or HTTP/2. Calls keep gRPC's semantics: metadata, byte messages, deadlines,
//! compression and a final status. [`Protocol`] selects the wire format. [`Transport`] selects the connection: the
//! engine's [`Channel`](thalweg_engine::Channel) for HTTP/2, or [`Http1`].
//!
//! Dropping a call cancels it: over HTTP/2 its stream is reset, over HTTP/1.1 its connection is closed.
//!
//! Bidirectional calls need HTTP/2. Over HTTP/1.1 they fail immediately with UNIMPLEMENTED, as in connect-go. Most
//! HTTP/1.1 servers and proxies respond only after the last request, so a caller that awaits a response first would
//! deadlock.

mod http1;
mod outgoing_call;
mod protocol;
mod request_body;
mod responses;
mod transport;

use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use thalweg_engine::{CallOptions, Code, Method, Status};

use outgoing_call::{ClientConfig, OutgoingCall};

pub use http1::{Http1, Http1Options};
pub use outgoing_call::UnaryResponse;
pub use protocol::Protocol;
pub use responses::Responses;
pub use transport::Transport;

const NO_RESPONSE: &str = "no response arrived in time";

/// The sides of a call that stream messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Streams {
    /// The client: one response to many requests.
    Requests,
    /// The server: many responses to one request.
    Responses,
    /// Both; requires HTTP/2.
    Both,
}

/// A Connect or gRPC-Web client. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    config: Arc<ClientConfig>,
}

impl Client {
    /// Creates a client that speaks `protocol` over `transport`.
    pub fn new(protocol: Protocol, transport: impl Into<Transport>) -> Client {
        let config = ClientConfig { protocol, transport: transport.into(), uses_get: false };
        Client { config: Arc::new(config) }
    }

    /// Sends Connect's unary calls of methods [without side effects](Method::without_side_effects) by GET, so that
    /// intermediaries can cache responses. Off by default, since messages then appear in URLs and thus in logs. Calls
    /// whose URL would exceed 8 KiB still use POST.
    #[must_use]
    pub fn with_get(self, uses_get: bool) -> Client {
        Client { config: Arc::new(ClientConfig { uses_get, ..Arc::unwrap_or_clone(self.config) }) }
    }

    /// Returns the HTTP/1.1 connections, or `None` for HTTP/2.
    pub fn http1(&self) -> Option<&Http1> {
        match &self.config.transport {
            Transport::Http1(http1) => Some(http1),
            Transport::Http2(_) => None,
        }
    }

    /// Calls a unary method. Cancel-safe: dropping the future cancels the call.
    ///
    /// # Errors
    /// The status of the call if it is not OK, or a local status if there is no response.
    pub async fn unary(
        &self,
        method: &Method,
        metadata: &HeaderMap,
        message: Bytes,
        options: &CallOptions,
    ) -> Result<UnaryResponse, Status> {
        let call = OutgoingCall::new(&self.config, method, metadata, options)?;
        call.deadline.enforce(NO_RESPONSE, Box::pin(call.unary(message))).await
    }

    /// Opens a streaming call and returns the leading metadata and the response messages. Requests are sent while
    /// waiting for the response headers and while reading the messages.
    /// # Errors
    /// The status of a call that fails before its response headers, or a local status if there is no response. An error
    /// in `requests` ends the call.
    pub async fn stream<S>(
        &self,
        method: &Method,
        metadata: &HeaderMap,
        streams: Streams,
        requests: S,
        options: &CallOptions,
    ) -> Result<(HeaderMap, Responses), Status>
    where
        S: Stream<Item = Result<Bytes, Status>> + Send + 'static,
    {
        if streams == Streams::Both && matches!(self.config.transport, Transport::Http1(_)) {
            let why = "a bidirectional call needs HTTP/2, but this client uses HTTP/1.1";
            return Err(Status::local(Code::Unimplemented, why));
        }
        let call = OutgoingCall::new(&self.config, method, metadata, options)?;
        call.deadline.enforce(NO_RESPONSE, Box::pin(call.stream(requests))).await
    }
}
