//! Tracing of a server's calls: [`Tracing`].

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use thalweg_engine::server::{Handler, ServerMethod, StreamingCall, StreamingHandler, Traced};
use thalweg_engine::{RequestHead, ServiceOptions, Status, Traces};

use super::intercepted::Intercepted;
use crate::message::Message;

/// Creates the handlers of a server's methods, with or without spans.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracing(Option<Traces>);

impl Tracing {
    pub(super) fn by(traces: Traces) -> Self {
        Self(Some(traces))
    }

    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Creates the handler of a unary method.
    pub(super) fn unary<Req: Message>(&self, method: Intercepted<Req>, path: &str) -> Handler {
        match &self.0 {
            None => Handler::unary(method),
            Some(traces) => Handler::unary(Traced::new(method, traces.clone(), path)),
        }
    }

    /// Creates the handler of a streaming method.
    pub(super) fn streaming<Req: Message>(&self, method: Intercepted<Req>, path: &str) -> Handler {
        match &self.0 {
            None => Handler::streaming(method),
            Some(traces) => Handler::streaming(Traced::new(method, traces.clone(), path)),
        }
    }

    /// Handles an unknown `path`: with tracing, returns a method that rejects all calls with `status`, so that they are
    /// traced.
    ///
    /// # Errors
    /// `status`, without tracing.
    pub(super) fn reject_unknown(&self, path: &str, status: Status) -> Result<Arc<ServerMethod>, Status> {
        let Some(traces) = &self.0 else { return Err(status) };
        let handler = Handler::streaming(Traced::new(RejectAll(status), traces.clone(), path));
        Ok(Arc::new(ServerMethod::new("other", ServiceOptions::default(), handler)))
    }
}

struct RejectAll(Status);

impl StreamingHandler for RejectAll {
    fn start(&self, _: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        call.fail(&self.0);
        Box::pin(ready(()))
    }
}
