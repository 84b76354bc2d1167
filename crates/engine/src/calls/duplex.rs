//! A call with a request stream: [`Duplex`].

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use thalweg_balance::retry::HedgingPolicy;
use thalweg_balance::service_config::AttemptPolicy;
use thalweg_http2::StreamId;

use super::attempts::{Attempts, FailureKind};
use super::hedged_stream::{Hedged, HedgedResponse};
use super::prepared::Prepared;
use super::response_reader::ResponseReader;
use crate::call_context::Phase;
use crate::channel::Channel;
use crate::connection::{Connection, End, Outbox, SendLoop, SendOutcome, Slot, SlotKey, Source};
use crate::grpc::response::ResponseHeaders;
use crate::options::CallOptions;
use crate::status::{Code, Status};

/// Both directions of an active call: it sends the request while waiting for the response. Dropping it cancels the
/// call.
pub(super) struct Duplex<S, R> {
    pub(super) response: R,
    sender: SendLoop<S>,
    sending: Sending,
}

/// Progress of the request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sending {
    UnderWay,
    /// The whole request has been handed over.
    Done,
    /// The stream accepts no more of it.
    Stopped,
}

impl<S: Source + Send + 'static, R: ResponseReader> Duplex<S, R> {
    /// Opens a stream with `slot` and sends `request` until the response headers, or the end instead of them, have
    /// arrived. `read` creates the reader of the response. If the server has not processed the call, the whole request
    /// is sent again.
    ///
    /// # Errors
    /// Returns the reason the call was not made, or an error of the request.
    pub(super) async fn start(
        channel: &Channel,
        call: &Prepared,
        options: &CallOptions,
        request: S,
        slot: impl Fn(StreamId) -> Slot,
        read: impl Fn(&Arc<Connection>, SlotKey) -> R,
    ) -> Result<(Self, Result<Arc<ResponseHeaders>, End>), Status> {
        if let Some(AttemptPolicy::Hedging(policy)) = &options.attempts {
            return Box::pin(Self::start_hedged(channel, call, options, policy, request, slot, read)).await;
        }
        let mut attempts = Attempts::new(channel, options, call);
        let (mut connection, key) = attempts.open(&slot).await?;
        let measure = call.measure.clone();
        let mut sender = SendLoop::new(Arc::clone(&connection), key, request, call.outgoing, true, measure);
        sender.keep_handed_over(channel.replay_account(options), attempts.has_policy());
        let mut duplex = Self { response: read(&connection, key), sender, sending: Sending::UnderWay };
        loop {
            if call.deadline.is_some() {
                // When the deadline passes, this future is dropped.
                call.note_reached(&connection, None);
            }
            let headers = poll_fn(|cx| duplex.poll_headers(cx, call)).await;
            let headers = headers.inspect_err(|_| call.note_reached(&connection, None))?;
            let failure = duplex.response.attempt_failure(&headers);
            let has_failed = failure.is_some();
            let restarted = match failure {
                Some((status, kind)) if duplex.sender.can_restart() => {
                    let is_unprocessed = kind == FailureKind::Unprocessed;
                    match attempts.failed(status, kind, &connection).await {
                        Ok(sent) => {
                            call.measure.sent(sent);
                            true
                        }
                        Err(status) if is_unprocessed => return Err(status),
                        Err(_) => false,
                    }
                }
                Some(_) | None => false,
            };
            if !restarted {
                match &headers {
                    Ok(_) if has_failed => {}
                    Ok(_) => channel.note_success(),
                    Err(_) => call.note_reached(&connection, None),
                }
                duplex.sender.drop_handed_over();
                return Ok((duplex, headers));
            }
            let key;
            (connection, key) = attempts.open(&slot).await?;
            duplex.sender.restart(Arc::clone(&connection), key, duplex.sending == Sending::Done);
            if !attempts.retries.needs_replay() {
                duplex.sender.drop_handed_over();
            }
            duplex.sending = Sending::UnderWay;
            duplex.response = read(&connection, key);
        }
    }

    /// Like [`start`](Self::start), with several attempts at the same time.
    async fn start_hedged(
        channel: &Channel,
        call: &Prepared,
        options: &CallOptions,
        policy: &HedgingPolicy,
        request: S,
        slot: impl Fn(StreamId) -> Slot,
        read: impl Fn(&Arc<Connection>, SlotKey) -> R,
    ) -> Result<(Self, Result<Arc<ResponseHeaders>, End>), Status> {
        let mut outbox = Outbox::new(request, call.outgoing, call.measure.clone());
        outbox.keep_handed_over(channel.replay_account(options), true);
        let hedged = Hedged { channel, call, options, slot, read };
        let HedgedResponse { substream, response, headers } = hedged.attempts(policy, &mut outbox).await?;
        let connection = Arc::clone(&substream.connection);
        let sending = if substream.is_done() { Sending::Done } else { Sending::UnderWay };
        let mut duplex = Self { response, sender: SendLoop::resume(outbox, substream), sending };
        let headers = if let Some(headers) = headers {
            headers
        } else {
            let headers = poll_fn(|cx| duplex.poll_headers(cx, call)).await;
            let headers = headers.inspect_err(|_| call.note_reached(&connection, None))?;
            if duplex.response.attempt_failure(&headers).is_none() {
                channel.note_success();
            }
            headers
        };
        if headers.is_err() {
            call.note_reached(&connection, None);
        }
        Ok((duplex, headers))
    }

    fn poll_headers(
        &mut self,
        cx: &mut Context<'_>,
        call: &Prepared,
    ) -> Poll<Result<Result<Arc<ResponseHeaders>, End>, Status>> {
        self.poll_send(cx)?;
        let is_sent = self.sending != Sending::UnderWay;
        call.progress.note(if is_sent { Phase::MessageResponse } else { Phase::Requests });
        self.response.poll_headers(cx).map(Ok)
    }

    /// Sends requests while the caller waits.
    ///
    /// # Errors
    /// Returns an error of the request. If the stream has ended, the reader reports its outcome.
    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Status> {
        if self.sending != Sending::UnderWay {
            return Ok(());
        }
        match self.sender.poll_send(cx) {
            Poll::Pending => {}
            Poll::Ready(SendOutcome::Done) => self.sending = Sending::Done,
            Poll::Ready(SendOutcome::StreamClosed) => self.sending = Sending::Stopped,
            Poll::Ready(SendOutcome::Failed(status)) => return Err(status),
        }
        Ok(())
    }

    /// Returns the response; a spawned task sends the rest of the request.
    pub(super) fn into_response(self) -> R {
        if self.sending == Sending::UnderWay {
            send_in_background(self.sender);
        }
        self.response
    }
}

fn send_in_background<S: Source + Send + 'static>(mut sender: SendLoop<S>) {
    let mut unfinished = FailUnlessFinished(Some(sender.stream()));
    tokio::spawn(async move {
        let outcome = poll_fn(|cx| sender.poll_send(cx)).await;
        let Some((connection, key)) = unfinished.0.take() else { return };
        if let SendOutcome::Failed(status) = outcome {
            connection.fail(key, &status);
        }
    });
}

/// Fails the call if the task that sends its requests does not finish: the request stream panicked, or the runtime
/// shuts down. Otherwise the server would wait for requests, and the reader for the server.
struct FailUnlessFinished(Option<(Arc<Connection>, SlotKey)>);

impl Drop for FailUnlessFinished {
    fn drop(&mut self) {
        if let Some((connection, key)) = self.0.take() {
            connection
                .fail(key, &Status::local(Code::Internal, "the stream of requests panicked or was dropped"));
        }
    }
}
