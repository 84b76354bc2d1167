//! Calls that are not unary: a stream of messages in either direction.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::HeaderMap;
use tokio::time::Instant;

use super::attempts::Attempts;
use super::prepared::{Prepared, within};
use crate::call_context::{CallName, Phase};
use crate::channel::Channel;
use crate::connection::{
    Connection, End, Inbox, Incoming, SendLoop, SendOutcome, Slot, SlotKey, Source, WakesOn,
};
use crate::grpc::codec::Payload;
use crate::grpc::envelope::Prefix;
use crate::measure::CallMeasure;
use crate::method::Method;
use crate::options::CallOptions;
use crate::status::{Code, Status};

impl Channel {
    /// Opens a call with a stream of requests, and waits for the response's head, sending meanwhile. With the head's
    /// metadata.
    ///
    /// # Errors
    /// The status of the call if it ends before its head and not with OK, or why it was not made.
    pub async fn stream<S: Source + Send + 'static>(
        &self,
        method: &Method,
        metadata: &HeaderMap,
        requests: S,
        options: &CallOptions,
    ) -> Result<(Exchange<S>, HeaderMap), Status> {
        let call = Prepared::new(self, method, metadata, options)?;
        let begun = async {
            let mut attempts = Attempts::new(self.lane_set(), options, &call);
            let slot = |stream| {
                let inbox = Inbox::new(options.max_decoding_message_size);
                Slot::of_client(stream, inbox, WakesOn::Messages)
            };
            let (mut connection, key) = attempts.open(slot).await?;
            let mut exchange = Exchange::new(&connection, key, requests, method, &call, options);
            loop {
                if call.deadline.is_some() {
                    // When it passes, all this is dropped.
                    call.note_reached(&connection, None);
                }
                let head = poll_fn(|cx| exchange.poll_head(cx, &call)).await;
                match head.inspect_err(|_| call.note_reached(&connection, None))? {
                    Ok(metadata) => {
                        exchange.sender.drop_handed_over();
                        return Ok((exchange, metadata));
                    }
                    Err(End::Lost { status, unprocessed: true }) if exchange.sender.can_restart() => {
                        // All of it is sent again.
                        call.measure.sent(attempts.unprocessed(&connection, status)?);
                        let key;
                        (connection, key) = attempts.open(slot).await?;
                        exchange.restart(&connection, key, method, &call, options);
                    }
                    // A response without a head (Trailers-Only) that says OK has no metadata, and no messages.
                    Err(end) => {
                        call.note_reached(&connection, None);
                        return end.outcome().map(|_| (exchange, HeaderMap::new()));
                    }
                }
            }
        };
        // A call that is given up here is dropped before its outcome is known: its measure is held until then.
        within(call.deadline, begun).await.map_err(|status| {
            let status = call.failed(status, self, method);
            call.measure.fail(&status);
            status
        })
    }
}

/// A streaming call under way: both its directions. Dropping it cancels the call.
pub struct Exchange<S> {
    responses: Incoming,
    sender: SendLoop<S>,
    sending: Sending,
    deadline: Option<Instant>,
    measure: CallMeasure,
}

/// How far the requests are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sending {
    UnderWay,
    /// All of them are handed over.
    Done,
    /// The stream takes no more of them.
    Stopped,
}

impl<S: Source + Send + 'static> Exchange<S> {
    fn new(
        connection: &Arc<Connection>,
        key: SlotKey,
        requests: S,
        method: &Method,
        call: &Prepared,
        options: &CallOptions,
    ) -> Self {
        let measure = call.measure.clone();
        let mut sender =
            SendLoop::new(Arc::clone(connection), key, requests, call.outgoing, true, measure.clone());
        sender.keep_handed_over();
        let responses = responses(connection, key, method, call, options);
        Self { responses, sender, sending: Sending::UnderWay, deadline: call.deadline, measure }
    }

    /// The server has not looked at the call: it begins anew on another stream.
    fn restart(
        &mut self,
        connection: &Arc<Connection>,
        key: SlotKey,
        method: &Method,
        call: &Prepared,
        options: &CallOptions,
    ) {
        self.sender.restart(Arc::clone(connection), key, self.sending == Sending::Done);
        self.sending = Sending::UnderWay;
        self.responses = responses(connection, key, method, call, options);
    }

    /// Sends while waiting. Only an error of the requests' encoding is one here: a stream that is gone has its end
    /// noted, and the reader finds it.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Status> {
        if self.sending != Sending::UnderWay {
            return Ok(());
        }
        match self.sender.poll_send(cx) {
            Poll::Pending => {}
            Poll::Ready(SendOutcome::Done) => self.sending = Sending::Done,
            Poll::Ready(SendOutcome::Gone) => self.sending = Sending::Stopped,
            Poll::Ready(SendOutcome::Failed(status)) => return Err(status),
        }
        Ok(())
    }

    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        call: &Prepared,
    ) -> Poll<Result<Result<HeaderMap, End>, Status>> {
        self.poll_send(cx)?;
        call.progress.note(self.phase());
        self.responses.poll_head(cx).map(|head| Ok(head.map(|head| head.metadata.clone())))
    }

    /// How far it is while its response has not begun.
    fn phase(&self) -> Phase {
        if self.sending == Sending::UnderWay { Phase::Requests } else { Phase::Answer }
    }

    fn poll_prefix(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Prefix>, Status>> {
        self.poll_send(cx)?;
        self.responses.poll_prefix(cx).map(Option::transpose)
    }

    /// The responses; the requests go on being sent while those are read at leisure.
    pub fn into_responses(self) -> Incoming {
        let Self { mut responses, sender, sending, deadline, .. } = self;
        if sending == Sending::UnderWay {
            send_in_background(sender);
        }
        responses.set_deadline(deadline);
        responses
    }

    /// The one response of a call that has no more, by `read`; and the trailing metadata.
    ///
    /// # Errors
    /// The status of the call if that is not OK, what `read` says, or that there were no message or several.
    pub async fn only_response<T>(
        mut self,
        read: impl FnOnce(Payload<'_>) -> Result<T, Status>,
    ) -> Result<(T, HeaderMap), Status> {
        let (deadline, measure) = (self.deadline, self.measure.clone());
        let reply = async {
            let Some(prefix) = poll_fn(|cx| self.poll_prefix(cx)).await? else {
                return Err(Status::unimplemented("the server ended the call with OK, but sent no message"));
            };
            let message = self.responses.take(prefix).and_then(read);
            let message = message.map_err(|status| self.responses.fail(status))?;
            if poll_fn(|cx| self.poll_prefix(cx)).await?.is_some() {
                return Err(Status::unimplemented("the server answered with more than one message"));
            }
            Ok((message, self.responses.take_trailers().unwrap_or_default()))
        };
        let outcome = within(deadline, reply).await.map_err(|status| self.responses.explain(status));
        match &outcome {
            Ok(_) => measure.end(Code::Ok),
            Err(status) => measure.fail(status),
        }
        outcome
    }
}

fn responses(
    connection: &Arc<Connection>,
    key: SlotKey,
    method: &Method,
    call: &Prepared,
    options: &CallOptions,
) -> Incoming {
    let of = CallName { path: method.path_to_keep(), attempt: call.progress.attempt() };
    let size_max = options.max_decoding_message_size;
    Incoming::of_responses(Arc::clone(connection), key, size_max, call.measure.clone(), of)
}

pub(super) fn send_in_background<S: Source + Send + 'static>(mut sender: SendLoop<S>) {
    let mut unfinished = FailUnlessFinished(Some(sender.stream()));
    tokio::spawn(async move {
        let outcome = poll_fn(|cx| sender.poll_send(cx)).await;
        let Some((connection, key)) = unfinished.0.take() else { return };
        if let SendOutcome::Failed(status) = outcome {
            connection.fail(key, &status);
        }
    });
}

/// Ends the call when the task that sends its requests does not come to its end: the stream of requests panicked, or
/// the runtime shuts down. The server would wait for more, and the reader for the server.
struct FailUnlessFinished(Option<(Arc<Connection>, SlotKey)>);

impl Drop for FailUnlessFinished {
    fn drop(&mut self) {
        if let Some((connection, key)) = self.0.take() {
            connection.fail(key, &Status::internal("the stream of requests panicked or was dropped"));
        }
    }
}
