//! One attempt at a call with one message: [`UnaryAttempt`].

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::HeaderMap;
use thalweg_core::chain::Chain;
use thalweg_http2::{self as http2, Block, ErrorCode, OpenError, StreamId, Tag};
use tokio::time::Instant;

use super::attempts::Attempts;
use crate::call_context::Phase;
use crate::connection::{
    Connection, End, Inbox, NeedsClone, NotOpened, PolledTask, Single, Slot, SlotKey, WakesOn, open_stream,
    poll_with_waker, put_encode_buffer, take_encode_buffer,
};
use crate::encode::Encode;
use crate::grpc::response::ResponseHeaders;
use crate::status::{Code, Status};

/// Result of a call that did not fail.
pub(super) enum Outcome<S> {
    Done(Arrived),
    /// A response to be read as a stream.
    Started(Arc<Connection>, S),
}

/// The response an attempt waits for.
pub(super) trait AwaitedResponse: Copy + Unpin {
    /// A response that has started and is read as a stream from then on.
    type Started;
    const WAKES_ON: WakesOn;
    /// Whether a response that arrived may have a failure instead of a message.
    const MAY_HAVE_FAILED: bool;

    /// Creates the inbox that gathers the response in `buffer`, which is empty.
    fn inbox(self, buffer: Vec<u8>) -> Inbox;

    /// Returns the response if it has started. Its end has not arrived.
    fn started(key: SlotKey, slot: &mut Slot) -> Option<Self::Started>;

    /// Returns the status of a response that failed before any message, if such a response counts as arrived.
    fn failure(arrived: &Arrived) -> Option<Status>;
}

/// Result of one attempt at a call.
pub(super) enum Attempt<S> {
    Done(Result<Arrived, Status>),
    Started(S),
    /// The lane did not accept the call.
    NotOpened(NotOpened),
    /// The server reports that it has not processed the call. The three kinds of failures are variants, because a pair
    /// of status and kind would make each result larger.
    Unprocessed(Status),
    /// The server failed the call, or its connection was lost.
    Processed(Status),
    /// The same after response headers.
    Committed(Status),
}

impl<S> Attempt<S> {
    fn failed(status: Status, has_headers: bool) -> Self {
        if has_headers { Self::Committed(status) } else { Self::Processed(status) }
    }
}

/// The parts of a response that ended with OK.
pub(super) struct Arrived {
    pub(super) headers: Option<Arc<ResponseHeaders>>,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Option<Box<HeaderMap>>,
}

/// One attempt at a call with one message on one connection. Dropping it cancels the call.
pub(super) struct UnaryAttempt<'a, 'b, Req, R> {
    connection: &'a Arc<Connection>,
    attempts: &'a mut Attempts<'b>,
    message: &'a Req,
    /// The encoded message, if it is large and has not been sent.
    large: &'a mut Option<Box<Chain>>,
    response: R,
    progress: Progress,
    /// Send time, if the call is timed.
    sent_at: Option<Instant>,
}

enum Progress {
    /// Not sent.
    New,
    Waiting(SlotKey),
    Done,
}

impl<'a, 'b, Req, R> UnaryAttempt<'a, 'b, Req, R> {
    #[inline]
    pub(super) fn new(
        connection: &'a Arc<Connection>,
        attempts: &'a mut Attempts<'b>,
        message: &'a Req,
        large: &'a mut Option<Box<Chain>>,
        response: R,
    ) -> Self {
        let progress = Progress::New;
        Self { connection, attempts, message, large, response, progress, sent_at: None }
    }
}

impl<Req: Encode, R: AwaitedResponse> UnaryAttempt<'_, '_, Req, R> {
    fn open(&mut self, cx: &mut Context<'_>) -> Result<SlotKey, Attempt<R::Started>> {
        let mut encode_buffer = take_encode_buffer();
        let opened = self.open_with(&mut encode_buffer, cx);
        put_encode_buffer(encode_buffer);
        opened
    }

    fn open_with(
        &mut self,
        encode_buffer: &mut Vec<u8>,
        cx: &mut Context<'_>,
    ) -> Result<SlotKey, Attempt<R::Started>> {
        let message = match self.large.take() {
            Some(wire) => Single::Large(wire),
            None => match self.attempts.call.outgoing.encode_single(self.message, encode_buffer) {
                Ok(message) => message,
                Err(status) => {
                    self.attempts.ticket.served();
                    self.attempts.call.progress.note(Phase::Unsent);
                    return Err(Attempt::Done(Err(status)));
                }
            },
        };
        let (len, mut message, encode_buffer) = (message.message_len(), Some(message), &*encode_buffer);
        let mut waker = Some(cx.waker().clone());
        let mut adapted = None;
        let headers = self.attempts.fields().block(self.connection, &mut adapted);
        let mut state = self.connection.lock();
        let slot = |stream| {
            let mut slot = Slot::of_client(stream, self.response.inbox(take_inbox()), R::WAKES_ON);
            slot.send_closed = true;
            slot.receiver = waker.take();
            slot
        };
        let opened = open_stream(
            &mut state,
            || self.attempts.ticket.has_waited(),
            slot,
            |http2, key| send_request(http2, key.into(), headers, &mut message, encode_buffer),
        );
        let key = match opened {
            Ok(key) => key,
            Err(refused) => {
                drop(state);
                // Kept, so that the next attempt need not encode it again.
                if let Some(Single::Large(wire)) = message {
                    *self.large = Some(wire);
                }
                return Err(Attempt::NotOpened(refused));
            }
        };
        state.notify_driver();
        let is_timed = key.is_each(state.timed_each);
        drop(state);
        self.attempts.call.measure.sent_to(&self.connection.peer);
        self.attempts.call.measure.sent_message(len, || self.message.encoded_len());
        self.attempts.ticket.served();
        self.connection.call_started();
        if is_timed {
            self.sent_at = Some(Instant::now());
        }
        Ok(key)
    }

    fn poll_response(&mut self, cx: &mut Context<'_>, key: SlotKey) -> Poll<Attempt<R::Started>> {
        poll_with_waker(cx, |task| self.take_response(task, key))
    }

    #[inline]
    fn take_response(
        &mut self,
        task: &mut PolledTask<'_>,
        key: SlotKey,
    ) -> Result<Poll<Attempt<R::Started>>, NeedsClone> {
        let mut state = self.connection.lock();
        let Some(slot) = state.slot(key) else {
            let status = Status::local(Code::Internal, "the call was polled after completion");
            return Ok(Poll::Ready(Attempt::Done(Err(status))));
        };
        let Some(end) = slot.end.take() else {
            if let Some(started) = R::started(key, slot) {
                drop(state);
                self.progress = Progress::Done;
                return Ok(Poll::Ready(Attempt::Started(started)));
            }
            task.store_waker_in(&mut slot.receiver)?;
            return Ok(Poll::Pending);
        };
        let (stream, body) = (slot.stream, slot.inbox.take_rest());
        let headers = slot.client().and_then(|call| call.headers.take());
        state.discard(key);
        state.load.responses += 1;
        if let Some(sent_at) = self.sent_at {
            state.load.note_call(sent_at, Instant::now());
        }
        if state.http2.is_open(stream) {
            // The server responded before it had the whole request, and may never read the rest.
            state.http2.reset(stream, ErrorCode::Cancel);
            state.notify_driver();
        }
        drop(state);
        self.progress = Progress::Done;
        self.connection.call_ended();
        if !matches!(end, End::Complete(Ok(_))) {
            self.note_failed(headers.is_some());
        }
        Ok(Poll::Ready(match end {
            End::Complete(Ok(trailers)) => Attempt::Done(Ok(Arrived { headers, body, trailers })),
            End::Complete(Err(status)) => {
                let is_committed = headers.is_some();
                let status =
                    headers.iter().fold(status, |status, headers| status.prepend_metadata(&headers.metadata));
                Attempt::failed(status, is_committed)
            }
            End::Lost { status, unprocessed: true } => Attempt::Unprocessed(status),
            End::Lost { status, .. } => Attempt::failed(status, headers.is_some()),
        }))
    }

    #[cold]
    fn note_failed(&self, has_headers: bool) {
        self.attempts.call.note_reached(self.connection, None);
        if has_headers {
            self.attempts.call.progress.note(Phase::Response);
        }
    }
}

impl<Req: Encode, R: AwaitedResponse> Future for UnaryAttempt<'_, '_, Req, R> {
    type Output = Attempt<R::Started>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.progress {
            Progress::Waiting(key) => this.poll_response(cx, key),
            Progress::New => match this.open(cx) {
                Ok(key) => {
                    this.progress = Progress::Waiting(key);
                    Poll::Pending
                }
                Err(ended) => Poll::Ready(ended),
            },
            Progress::Done => Poll::Pending,
        }
    }
}

impl<Req, R> UnaryAttempt<'_, '_, Req, R> {
    #[cold]
    fn give_up(&self, key: SlotKey) {
        if self.attempts.call.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            self.attempts.call.note_reached(self.connection, Some(key));
        }
        self.connection.cancel(key);
    }
}

impl<Req, R> Drop for UnaryAttempt<'_, '_, Req, R> {
    fn drop(&mut self) {
        if let Progress::Waiting(key) = self.progress {
            self.give_up(key);
        }
    }
}

/// Opens a stream, sends the headers and the only message, and takes the message.
#[inline]
fn send_request(
    http2: &mut http2::Connection,
    tag: Tag,
    headers: Block<'_>,
    message: &mut Option<Single>,
    encode_buffer: &[u8],
) -> Result<StreamId, OpenError> {
    let stream = if let Some(Single::Small(range)) = message {
        let (stream, is_sent) = http2.open_with_message(tag, headers, &encode_buffer[range.clone()])?;
        if is_sent {
            return Ok(stream);
        }
        stream
    } else {
        http2.open(tag, headers, false)?
    };
    if let Some(message) = message.take() {
        // A stream that has already ended reports its outcome to its slot.
        let _ = message.send(http2, stream, encode_buffer, true);
    }
    Ok(stream)
}

/// Inboxes of at most this many bytes are reused.
pub(super) const POOLED_INBOX_CAPACITY_MAX: usize = 256;
/// Limit of reused inboxes per thread, 16 KiB in all.
const INBOX_POOL_MAX: usize = 64;

thread_local! {
    /// Calls start and end on their callers' threads, while responses arrive on the driver's. Each call reuses the
    /// inbox of an earlier call of its thread, so small responses need no allocation.
    static INBOX_POOL: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

#[inline]
fn take_inbox() -> Vec<u8> {
    INBOX_POOL.try_with(|pool| pool.borrow_mut().pop()).ok().flatten().unwrap_or_default()
}

#[inline]
pub(super) fn put_inbox(mut inbox: Vec<u8>) {
    inbox.clear();
    // The thread-local may be gone while the thread ends; the inbox is then freed.
    let _ = INBOX_POOL.try_with(|pool| {
        let mut pool = pool.borrow_mut();
        if pool.len() < INBOX_POOL_MAX && inbox.capacity() > 0 {
            pool.push(inbox);
        }
    });
}
