//! Calls by Connect and gRPC-Web: [`Client`].
//!
//! For those who sit behind proxies that know no trailers, or no HTTP/2. What a call is stays gRPC's: metadata,
//! messages of bytes, deadline, compression, a status at the end. Which protocol carries it is [`Protocol`]'s, and what
//! carries that is [`Transport`]'s: the engine's own [`Channel`](thalweg_engine::Channel) for HTTP/2, or [`Http1`].
//!
//! Dropping a call cancels it: over HTTP/2 its stream is reset, over HTTP/1.1 its connection is closed.
//!
//! Bidirectional calls need HTTP/2. Over HTTP/1.1 they end with UNIMPLEMENTED at once, as connect-go's client has it:
//! most servers and proxies of HTTP/1.1 would not answer before the last request, and a caller that waits for an answer
//! before it sends on would wait for ever.

mod answers;
mod calling;
mod http1;
mod protocol;
mod request_body;
mod transport;

use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use thalweg_engine::{CallOptions, Code, Method, Status};

use calling::{Calling, Manner};

pub use answers::Answers;
pub use calling::Reply;
pub use http1::{Http1, Http1Options};
pub use protocol::Protocol;
pub use transport::Transport;

const TOO_LATE: &str = "no answer had come";

/// Which side of a call sends a stream of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Streams {
    /// The client: one answer to many requests.
    Requests,
    /// The server: many answers to one request.
    Answers,
    /// Both of them. It needs HTTP/2.
    Both,
}

/// Makes calls by Connect or gRPC-Web. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    manner: Arc<Manner>,
}

impl Client {
    /// One that writes calls as `protocol` has it, and sends them by `transport`.
    pub fn new(protocol: Protocol, transport: impl Into<Transport>) -> Client {
        let manner = Manner { protocol, transport: transport.into(), uses_get: false };
        Client { manner: Arc::new(manner) }
    }

    /// Has Connect's unary calls of methods [without side effects](Method::without_side_effects) go by GET, so that
    /// what is between can keep their answers; not by default, since their messages then stand in URLs, and so in logs.
    /// Those whose URL would become longer than 8 KiB go by POST all the same.
    #[must_use]
    pub fn with_get(self, uses_get: bool) -> Client {
        Client { manner: Arc::new(Manner { uses_get, ..Arc::unwrap_or_clone(self.manner) }) }
    }

    /// Its connections, if they are of HTTP/1.1.
    pub fn http1(&self) -> Option<&Http1> {
        match &self.manner.transport {
            Transport::Http1(http1) => Some(http1),
            Transport::Http2(_) => None,
        }
    }

    /// Calls a unary method. Cancel-safe: dropping the future cancels the call.
    ///
    /// # Errors
    /// The status of the call if that is not OK, or why there is none.
    pub async fn unary(
        &self,
        method: &Method,
        metadata: &HeaderMap,
        message: Bytes,
        options: &CallOptions,
    ) -> Result<Reply, Status> {
        let calling = Calling::new(&self.manner, method, metadata, options)?;
        calling.deadline.hold(TOO_LATE, Box::pin(calling.unary(message))).await
    }

    /// Opens a call with streams, and waits for the head of the answer, sending meanwhile: its metadata, and what comes
    /// behind it. The requests go on being sent while that is read.
    ///
    /// # Errors
    /// The status of the call if it ends before its head and not with OK, or why there is none. An error among the
    /// requests ends the call.
    pub async fn stream<S>(
        &self,
        method: &Method,
        metadata: &HeaderMap,
        streams: Streams,
        requests: S,
        options: &CallOptions,
    ) -> Result<(HeaderMap, Answers), Status>
    where
        S: Stream<Item = Result<Bytes, Status>> + Send + 'static,
    {
        if streams == Streams::Both && matches!(self.manner.transport, Transport::Http1(_)) {
            let why = "a bidirectional call needs HTTP/2, and this client is set up for HTTP/1.1";
            return Err(Status::local(Code::Unimplemented, why));
        }
        let calling = Calling::new(&self.manner, method, metadata, options)?;
        calling.deadline.hold(TOO_LATE, Box::pin(calling.stream(requests))).await
    }
}
