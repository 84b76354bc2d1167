//! In-process calls without a connection: [`LocalCalls`].
//!
//! They run the same handlers as calls over a connection and end with the same statuses, without a task, a queue or
//! HTTP/2. They serve protocols other than gRPC whose requests are available as encoded messages, mostly Protobuf.

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
use crate::measure::{CallMeasure, ServerMeasure, SpanSource};
use crate::status::Status;

/// Calls the methods of a server without a connection.
///
/// Any method can be called either way. A mismatch with its call type ends with the same status as over a connection.
/// Messages are bytes without prefix and compression. Size limits and the call's deadline apply.
///
/// Response metadata omits fields written by the transport, and fails if it exceeds a connection's size limit. Metrics
/// and traces include these calls; channelz counts of connections do not. Slow methods get no tasks.
#[derive(Clone, Debug)]
pub struct LocalCalls {
    router: Arc<dyn Router>,
    measure: ServerMeasure,
}

impl LocalCalls {
    /// Creates calls to the methods of `router`, measured as configured in `config`.
    pub fn new(config: &ServerConfig, router: Arc<dyn Router>) -> Self {
        Self { router, measure: ServerMeasure::new(&config.measure) }
    }

    /// Calls the method at `path`, `/package.Service/Method`, with one message for one response message. The handler
    /// starts here and continues where the returned future is polled.
    pub fn call_unary(&self, path: &str, head: &RequestHead, message: Bytes) -> LocalUnary {
        let (method, measure) = self.find(path, head);
        match method {
            Ok(method) => LocalUnary::start(&method, head, message, measure),
            Err(status) => LocalUnary::failed(status, &measure),
        }
    }

    /// Like [`call_unary`](Self::call_unary), for one of [`methods`](Self::methods).
    pub fn call_method(&self, method: &Arc<ServerMethod>, head: &RequestHead, message: Bytes) -> LocalUnary {
        let measure = self.measure(&method.name, Some(method), head);
        LocalUnary::start(method, head, message, measure)
    }

    /// Calls the method at `path` with a stream of requests for a stream of responses. The handler reads an error in
    /// `requests`; a unary call ends with it.
    pub fn call_stream<S>(&self, path: &str, head: RequestHead, requests: S) -> LocalStream
    where
        S: Stream<Item = Result<Bytes, Status>> + Send + 'static,
    {
        let (method, measure) = self.find(path, &head);
        LocalStream::start(method, head, Box::pin(requests), measure)
    }

    /// Returns the methods in the order of their names. Empty if the router does not know them in advance.
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

    /// Starts counting and measuring a call.
    fn measure(&self, path: &str, method: Option<&Arc<ServerMethod>>, head: &RequestHead) -> CallMeasure {
        let span_source = || {
            if method.is_some_and(|method| method.is_streaming()) {
                return None;
            }
            let path = method.map_or_else(|| path.into(), |method| Arc::clone(&method.name));
            Some(Arc::new(UnstartedCall { path, metadata: head.metadata.clone() }) as Arc<dyn SpanSource>)
        };
        let measure = self.measure.call(method.map(|method| &method.name), span_source);
        measure.count();
        measure
    }
}

/// A call whose handler has not started.
struct UnstartedCall {
    path: Arc<str>,
    metadata: HeaderMap,
}

impl SpanSource for UnstartedCall {
    fn path(&self) -> &str {
        &self.path
    }

    fn metadata(&self) -> &HeaderMap {
        &self.metadata
    }
}
