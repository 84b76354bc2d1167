//! Hedging of a call with a request stream: each attempt sends the same messages, from the first on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use thalweg_balance::retry::{HedgingPolicy, Progress};
use thalweg_http2::StreamId;

use super::attempts::{Attempts, FailureKind};
use super::hedging::{self, Ended, HedgedAttempt};
use super::prepared::Prepared;
use super::response_reader::ResponseReader;
use super::retries::Retries;
use crate::call_context::Phase;
use crate::channel::Channel;
use crate::connection::{Connection, End, Outbox, Slot, SlotKey, Source, Substream, SubstreamOutcome};
use crate::grpc::response::ResponseHeaders;
use crate::options::CallOptions;
use crate::status::Status;

/// The parts of a call that its attempts share: `slot` and `read` create the slot and the reader of a response.
pub(super) struct Hedged<'a, L, R> {
    pub(super) channel: &'a Channel,
    pub(super) call: &'a Prepared,
    pub(super) options: &'a CallOptions,
    pub(super) slot: L,
    pub(super) read: R,
}

/// The attempt that the call is committed to.
pub(super) struct HedgedResponse<R> {
    pub(super) substream: Substream,
    pub(super) response: R,
    /// The response headers, or the end instead of them; `None` if they have not arrived.
    pub(super) headers: Option<Result<Arc<ResponseHeaders>, End>>,
}

/// The stream of an attempt, or the reason it was not opened.
type Opened = Result<(Arc<Connection>, SlotKey), Status>;

/// One attempt. `F` opens its stream, `R` reads its response.
enum Attempt<F, R> {
    Opening(Pin<Box<F>>),
    Open(Box<OpenAttempt<R>>),
    Ended,
}

struct OpenAttempt<R> {
    hedged: HedgedAttempt,
    substream: Substream,
    response: R,
    /// The stream accepts no more of the request.
    is_stopped: bool,
}

/// Event of an open attempt.
enum Event {
    Headers(Result<Arc<ResponseHeaders>, End>),
    /// The next messages exceed a limit of the replay buffer.
    BufferFull,
    /// An error of the request.
    Failed(Status),
}

impl<L: Fn(StreamId) -> Slot, T, R: ResponseReader> Hedged<'_, L, T>
where
    T: Fn(&Arc<Connection>, SlotKey) -> R,
{
    /// Makes attempts at the call until response headers arrive at one, until one fills the replay buffer of `outbox`,
    /// or until none is left.
    ///
    /// # Errors
    /// Returns the status of the last attempt, if its failure has no response headers, or an error of the request.
    pub(super) async fn attempts<S: Source>(
        &self,
        policy: &HedgingPolicy,
        outbox: &mut Outbox<S>,
    ) -> Result<HedgedResponse<R>, Status> {
        let Self { channel, call, .. } = self;
        let start = |attempt| Attempt::Opening(Box::pin(self.open(attempt)));
        // The messages are counted once, as the call's: all attempts send them.
        let first_ended = |sent| call.measure.sent(sent);
        hedging::attempts(
            channel,
            call,
            policy,
            start,
            |attempt, cx| self.poll(attempt, outbox, cx),
            first_ended,
        )
        .await
    }

    async fn open(&self, mut attempt: HedgedAttempt) -> (Opened, HedgedAttempt) {
        let prepared = attempt.prepared.take();
        let mut attempts =
            Attempts::new(self.channel, self.options, prepared.as_deref().unwrap_or(self.call));
        attempts.retries = Retries::with_fields(attempt.fields.take());
        attempts.lanes_gone = attempt.lanes_gone;
        let opened = attempts.open_untried_by(self.call, &self.slot).await;
        attempt.lanes_gone = attempts.lanes_gone;
        drop(attempts);
        if let Ok((connection, _)) = &opened {
            self.call.note_tried(connection);
            attempt.count(self.channel, connection);
        }
        attempt.prepared = prepared;
        (opened, attempt)
    }

    fn poll<F, S: Source>(
        &self,
        attempt: &mut Attempt<F, R>,
        outbox: &mut Outbox<S>,
        cx: &mut Context<'_>,
    ) -> Poll<(Ended<HedgedResponse<R>>, HedgedAttempt)>
    where
        F: Future<Output = (Opened, HedgedAttempt)>,
    {
        if let Attempt::Opening(opening) = attempt {
            let (opened, hedged) = ready!(opening.as_mut().poll(cx));
            let (connection, key) = match opened {
                Ok(opened) => opened,
                Err(status) => {
                    let progress = Progress::Processed;
                    return Poll::Ready((Ended::Failed { status, progress, response: None }, hedged));
                }
            };
            if self.call.deadline.is_some() {
                // When the deadline passes, the call's future is dropped.
                self.call.note_reached(&connection, None);
            }
            let response = (self.read)(&connection, key);
            let substream = Substream::new(connection, key);
            *attempt =
                Attempt::Open(Box::new(OpenAttempt { hedged, substream, response, is_stopped: false }));
        }
        let Attempt::Open(open) = attempt else { return Poll::Pending };
        let event = ready!(open.poll(self.call, outbox, cx));
        let Attempt::Open(open) = std::mem::replace(attempt, Attempt::Ended) else { return Poll::Pending };
        Poll::Ready(self.ended(*open, event))
    }

    fn ended(&self, open: OpenAttempt<R>, event: Event) -> (Ended<HedgedResponse<R>>, HedgedAttempt) {
        let OpenAttempt { mut hedged, substream, response, .. } = open;
        let Substream { connection, .. } = &substream;
        if let Some(peer) = &self.options.peer
            && peer.address().as_ref() != Some(&connection.peer)
        {
            peer.note(&connection.peer, connection.call_timeout(), self.call.progress.attempt());
        }
        let headers = match event {
            Event::Failed(status) => return (Ended::Invalid(status), hedged),
            Event::BufferFull => {
                return (Ended::Committed(HedgedResponse { substream, response, headers: None }), hedged);
            }
            Event::Headers(headers) => headers,
        };
        let failure = response.attempt_failure(&headers);
        let has_headers = headers.is_ok();
        let connection = Arc::clone(&substream.connection);
        let response = HedgedResponse { substream, response, headers: Some(headers) };
        let Some((status, kind)) = failure else { return (Ended::Response(response), hedged) };
        let call = hedged.prepared.as_deref().unwrap_or(self.call);
        call.note_reached(&connection, None);
        let progress = match kind {
            FailureKind::Unprocessed => {
                let mut attempts = Attempts::new(self.channel, self.options, call);
                attempts.lanes_gone = hedged.lanes_gone;
                let progress = attempts.progress_of_unprocessed(&connection);
                let lanes_gone = attempts.lanes_gone;
                drop(attempts);
                hedged.lanes_gone = lanes_gone;
                progress
            }
            FailureKind::Processed | FailureKind::Committed => Progress::Processed,
        };
        (Ended::Failed { status, progress, response: has_headers.then_some(response) }, hedged)
    }
}

impl<R: ResponseReader> OpenAttempt<R> {
    fn poll<S: Source>(
        &mut self,
        call: &Prepared,
        outbox: &mut Outbox<S>,
        cx: &mut Context<'_>,
    ) -> Poll<Event> {
        let Self { hedged, substream, response, is_stopped } = self;
        let mut event = None;
        if !*is_stopped {
            match substream.poll_send(outbox, cx) {
                Poll::Pending | Poll::Ready(SubstreamOutcome::Done) => {}
                Poll::Ready(SubstreamOutcome::StreamClosed) => *is_stopped = true,
                Poll::Ready(SubstreamOutcome::Failed(status)) => event = Some(Event::Failed(status)),
                Poll::Ready(SubstreamOutcome::BufferFull) => event = Some(Event::BufferFull),
            }
        }
        let is_sent = *is_stopped || substream.is_done();
        call.progress.note(if is_sent { Phase::MessageResponse } else { Phase::Requests });
        let event = match event {
            Some(Event::Failed(status)) => Poll::Ready(Event::Failed(status)),
            // The attempt may have failed meanwhile, while another one is still under way.
            event => match (response.poll_headers(cx), event) {
                (Poll::Ready(headers), _) => Poll::Ready(Event::Headers(headers)),
                (Poll::Pending, Some(event)) => Poll::Ready(event),
                (Poll::Pending, None) => Poll::Pending,
            },
        };
        if let Some(own) = &hedged.prepared
            && (event.is_ready() || substream.has_sent_all(outbox))
        {
            own.measure.sent_as(&call.measure);
        }
        event
    }
}
