//! Calls without a connection, in the process of their server: [`LocalCalls`].
//!
//! They run the same handlers as those that come by a connection, and end with the same statuses; there is no task, no
//! queue and no HTTP/2. They are for what speaks another protocol than gRPC with its clients, and has their requests as
//! Protobuf's bytes, or whatever else the messages of a method are.

mod run;
mod stream;
mod unary;

use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;

pub use stream::LocalStream;
pub use unary::LocalUnary;

use super::dispatch::{Router, ServerMethod};
use super::serve::ServerConfig;
use crate::grpc::request::RequestHead;
use crate::measure::{CallMeasure, Called, ServerMeasure};
use crate::status::Status;

/// Calls the methods of a server without a connection.
///
/// Each method can be called either way, whatever its call type: what does not fit it ends with a status, as it would
/// by a connection. Messages are bytes without a prefix, and not compressed; the limits of their sizes and the call's
/// deadline hold. Metadata that the transport would write itself is left out of answers, and what is larger than a
/// connection would take becomes an error. Metrics and traces are told of these calls as of others; what is counted of
/// a connection, as channelz has it, is not, and slow methods get no tasks.
#[derive(Clone, Debug)]
pub struct LocalCalls {
    router: Arc<dyn Router>,
    measure: ServerMeasure,
}

impl LocalCalls {
    /// Of the methods of `router`, measured as `config` says.
    pub fn new(config: &ServerConfig, router: Arc<dyn Router>) -> Self {
        Self { router, measure: ServerMeasure::new(&config.measure) }
    }

    /// Calls the method at `path`, `/package.Service/Method`, with one message, for an answer of one message. The
    /// handler begins here, and goes on where what this returns is polled.
    pub fn call_unary(&self, path: &str, head: &RequestHead, message: Bytes) -> LocalUnary {
        let (method, measure) = self.find(path, head);
        match method {
            Ok(method) => LocalUnary::start(&method, head, message, measure),
            Err(status) => LocalUnary::failed(status, &measure),
        }
    }

    /// As [`call_unary`](Self::call_unary), of a method that is known: one of [`methods`](Self::methods).
    pub fn call_method(&self, method: &Arc<ServerMethod>, head: &RequestHead, message: Bytes) -> LocalUnary {
        let measure = self.measure(&method.name, Some(method), head);
        LocalUnary::start(method, head, message, measure)
    }

    /// Calls the method at `path` with the messages of `requests`, for a stream of answers. An error among them is what
    /// the handler finds when it reads on, and ends a call whose method is unary.
    pub fn call_stream<S>(&self, path: &str, head: RequestHead, requests: S) -> LocalStream
    where
        S: Stream<Item = Result<Bytes, Status>> + Send + 'static,
    {
        let (method, measure) = self.find(path, &head);
        LocalStream::start(method, head, Box::pin(requests), measure)
    }

    /// The methods that can be called, in the order of their names; none where the router does not know them
    /// beforehand.
    pub fn methods(&self) -> Vec<Arc<ServerMethod>> {
        let names = self.router.method_names();
        names.iter().filter_map(|name| self.router.find(format!("/{name}").as_bytes()).ok()).collect()
    }

    fn find(&self, path: &str, head: &RequestHead) -> (Result<Arc<ServerMethod>, Status>, CallMeasure) {
        let found = self.router.find(path.as_bytes());
        let measure = self.measure(path, found.as_ref().ok(), head);
        if let Err(status) = &found {
            measure.refused(status);
        }
        (found, measure)
    }

    /// Counts a call, which begins.
    fn measure(&self, path: &str, method: Option<&Arc<ServerMethod>>, head: &RequestHead) -> CallMeasure {
        let unbegun = || {
            if method.is_some_and(|method| method.is_streaming()) {
                return None;
            }
            let path = method.map_or_else(|| path.into(), |method| Arc::clone(&method.name));
            Some(Arc::new(Unbegun { path, metadata: head.metadata.clone() }) as Arc<dyn Called>)
        };
        let measure = self.measure.call(method.map(|method| &method.name), unbegun);
        measure.count();
        measure
    }
}

/// A call that no handler has begun yet.
struct Unbegun {
    path: Arc<str>,
    metadata: HeaderMap,
}

impl Called for Unbegun {
    fn path(&self) -> &str {
        &self.path
    }

    fn metadata(&self) -> &HeaderMap {
        &self.metadata
    }
}
