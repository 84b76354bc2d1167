//! Streaming calls: a stream of messages in one or both directions.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::HeaderMap;
use tokio::time::Instant;

use super::duplex::Duplex;
use super::prepared::{Prepared, within};
use crate::call_context::CallName;
use crate::channel::Channel;
use crate::connection::{Connection, Inbox, Incoming, Slot, Source, WakesOn};
use crate::grpc::codec::Payload;
use crate::grpc::envelope::Prefix;
use crate::measure::CallMeasure;
use crate::method::Method;
use crate::options::CallOptions;
use crate::service_settings::NotResolved;
use crate::status::{Code, Status};

impl Channel {
    /// Opens a call with a stream of requests and returns the response metadata once the headers have arrived. Requests
    /// are sent meanwhile.
    ///
    /// # Errors
    /// Returns the call's status if it ends before the headers with a status other than OK, or the reason it was not
    /// made.
    pub async fn stream<S: Source + Send + 'static>(
        &self,
        method: &Method,
        metadata: &HeaderMap,
        requests: S,
        options: &CallOptions,
    ) -> Result<(Exchange<S>, HeaderMap), Status> {
        let configured = match self.configured(method, options) {
            Ok(configured) => configured,
            Err(NotResolved) => Some(Box::pin(self.when_configured(method, metadata, options)).await),
        };
        let options = configured.as_deref().unwrap_or(options);
        let call = Prepared::new(self, method, metadata, options)?;
        let size_max = options.max_decoding_message_size;
        let slot = |stream| Slot::of_client(stream, Inbox::new(size_max), WakesOn::Messages);
        let read = |connection: &Arc<Connection>, key| {
            let of = CallName { path: method.path_to_keep(), attempt: call.progress.attempt() };
            Incoming::of_responses(Arc::clone(connection), key, size_max, call.measure.clone(), of)
        };
        let started = pin!(async {
            let (duplex, headers) = Duplex::start(self, &call, options, requests, slot, read).await?;
            let metadata = match headers {
                Ok(headers) => headers.metadata.clone(),
                // A Trailers-Only response with OK has no metadata and no messages.
                Err(end) => end.outcome().map(|_| HeaderMap::new())?,
            };
            Ok((Exchange { duplex, deadline: call.deadline, measure: call.measure.clone() }, metadata))
        });
        // A call given up here is dropped before its outcome is known, so its measure is kept until then.
        let outcome = match call.deadline {
            None => started.await,
            Some(_) if call.has_expired() => Err(call.expired()),
            deadline => within(deadline, started).await,
        };
        outcome.map_err(|status| {
            let status = call.failed(status, self, method);
            call.measure.fail(&status);
            status
        })
    }
}

/// An active streaming call with both directions. Dropping it cancels the call.
pub struct Exchange<S> {
    duplex: Duplex<S, Incoming>,
    deadline: Option<Instant>,
    measure: CallMeasure,
}

impl<S: Source + Send + 'static> Exchange<S> {
    fn poll_prefix(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Prefix>, Status>> {
        self.duplex.poll_send(cx)?;
        self.duplex.response.poll_prefix(cx).map(Option::transpose)
    }

    /// Returns the responses. The rest of the requests is sent in the background.
    pub fn into_responses(self) -> Incoming {
        let mut responses = self.duplex.into_response();
        responses.set_deadline(self.deadline);
        responses
    }

    /// Reads the single response of the call with `read`, and returns it with the trailing metadata.
    ///
    /// # Errors
    /// Returns the call's status if it is not OK, the error of `read`, or UNIMPLEMENTED if there is not exactly one
    /// message.
    pub async fn only_response<T>(
        mut self,
        read: impl FnOnce(Payload<'_>) -> Result<T, Status>,
    ) -> Result<(T, HeaderMap), Status> {
        let (deadline, measure) = (self.deadline, self.measure.clone());
        let response = async {
            let Some(prefix) = poll_fn(|cx| self.poll_prefix(cx)).await? else {
                return Err(Status::local(
                    Code::Unimplemented,
                    "the server ended the call with OK, but sent no message",
                ));
            };
            let message = self.duplex.response.take(prefix).and_then(read);
            let message = message.map_err(|status| self.duplex.response.fail(status))?;
            if poll_fn(|cx| self.poll_prefix(cx)).await?.is_some() {
                return Err(Status::local(Code::Unimplemented, "the server sent more than one message"));
            }
            Ok((message, self.duplex.response.take_trailers().unwrap_or_default()))
        };
        let outcome = within(deadline, response).await.map_err(|status| self.duplex.response.explain(status));
        match &outcome {
            Ok(_) => measure.end(Code::Ok),
            Err(status) => measure.fail(status),
        }
        outcome
    }
}
