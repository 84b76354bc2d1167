//! A call with streams of messages between its I/O task and Python, on either side: [`Exchange`].
//!
//! Both directions have a queue with a bound. The I/O task and Python take turns without waiting for each other: Python
//! takes received messages, and adds those to send, without an I/O thread; the I/O thread never takes the GIL.

use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use pyo3::prelude::*;
use thalweg_core::metadata::MetadataMap;
use thalweg_core::{Code, Status};
use thalweg_engine::{Chain, Encode, Encoding, Incoming, Pack, Source};

use crate::awaitable::{Poller, Waiter};
use crate::channel::Registration;
use crate::message::{self, Message};
use crate::queue::{Completion, Queue};
use crate::status::{DETAILS, Ended};

/// Bytes of messages in one direction from which its sender waits.
const QUEUE_LEN_MAX: usize = 256 * 1024;
/// Bytes that a message counts for in addition to its own.
const MESSAGE_OVERHEAD: usize = 64;

/// Changes that a waiter waits for.
pub(crate) type Interest = u8;
/// A received message, or the end of them.
pub(crate) const MESSAGE: Interest = 1;
/// Room for a message to send.
pub(crate) const ROOM: Interest = 2;
/// The peer's initial metadata.
pub(crate) const HEADERS: Interest = 4;
/// The end of the call.
pub(crate) const END: Interest = 8;
/// A connection that accepts the call.
pub(crate) const CONNECTION: Interest = 16;

/// State of a call.
pub(crate) struct Exchange {
    state: Mutex<State>,
    /// The queue of the loop or thread that runs callbacks.
    queue: Arc<Queue>,
}

#[derive(Default)]
struct State {
    received: Messages<Bytes>,
    to_send: Messages<Sending>,
    /// The metadata to send before the first message; server only.
    headers_to_send: Option<HeaderMap>,
    /// The status to send; server only.
    response_end: Option<(Code, String, HeaderMap)>,
    /// Server only.
    response_start: ResponseStart,
    /// The application has ended the response; server only.
    is_finished: bool,
    /// Compression of the response, in place of the server's; server only.
    compression: Option<Encoding>,
    /// The next message is sent uncompressed; server only.
    skips_compression: bool,
    /// A connection has accepted the call; client only.
    is_connected: bool,
    /// The peer's initial metadata; client only.
    headers: Option<Arc<HeaderMap>>,
    ended: Option<Arc<Ended>>,
    /// The end of the call's I/O, while there are received messages to take; client only.
    settled: Option<Settled>,
    task: Option<Waker>,
    /// Wakes the task that sends, which may be another.
    sender: Option<Waker>,
    waiters: Vec<(Interest, Waiter)>,
    callbacks: Vec<(Py<PyAny>, Py<PyAny>)>,
    /// A callback for an end that the application has not caused, and its argument; server only.
    on_cancel: Option<(Py<PyAny>, Py<PyAny>)>,
}

/// The end of a call's I/O. It becomes the call's end with the last received message.
struct Settled {
    ended: Ended,
    registration: Registration,
}

/// How a response starts.
#[derive(Default, PartialEq)]
enum ResponseStart {
    /// The call's task is not concerned.
    #[default]
    None,
    /// The call's task waits for the first message.
    Awaited,
    /// It has started.
    Done,
}

impl State {
    fn has_started(&self) -> bool {
        self.response_start == ResponseStart::Done
    }

    /// Keeps a waiter, unless its thread, which polls again after each signal interval, waits already.
    fn wait(&mut self, interest: Interest, waiter: Waiter) {
        let is_there =
            self.waiters.iter().any(|(of, other)| *of == interest && other.is_same_thread(&waiter));
        if !is_there {
            self.waiters.push((interest, waiter));
        }
    }
}

/// A message to send.
pub(crate) struct Sending {
    message: Message,
    is_compressed: bool,
}

impl Encode for Sending {
    fn encoded_len(&self) -> usize {
        self.message.encoded_len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.message.encode(out);
    }

    fn encode_chained(&self, out: &mut Chain) {
        self.message.encode_chained(out);
    }

    fn may_be_compressed(&self) -> bool {
        self.is_compressed
    }
}

/// A message in a queue.
trait Queued {
    /// Returns its length in bytes.
    fn len(&self) -> usize;
}

impl Queued for Bytes {
    fn len(&self) -> usize {
        Bytes::len(self)
    }
}

impl Queued for Sending {
    fn len(&self) -> usize {
        self.message.0.len()
    }
}

struct Messages<T> {
    queue: VecDeque<T>,
    len: usize,
    /// No more will be added.
    is_over: bool,
}

impl<T> Default for Messages<T> {
    fn default() -> Self {
        Self { queue: VecDeque::new(), len: 0, is_over: false }
    }
}

impl<T: Queued> Messages<T> {
    fn push(&mut self, message: T) {
        self.len += message.len() + MESSAGE_OVERHEAD;
        self.queue.push_back(message);
    }

    fn pop(&mut self) -> Option<T> {
        let message = self.queue.pop_front()?;
        self.len -= message.len() + MESSAGE_OVERHEAD;
        Some(message)
    }

    fn has_room(&self) -> bool {
        self.len < QUEUE_LEN_MAX
    }
}

/// The next received message.
pub(crate) enum Received {
    Message(Bytes),
    /// There are no more.
    Over,
    /// The call has ended.
    Ended(Arc<Ended>),
}

/// Result of adding a message to send.
pub(crate) enum Sent {
    Done,
    /// There was no more to send, or the call has ended.
    TooLate,
}

/// A server's response, once it is known how it starts.
pub(crate) enum Response {
    /// One message and OK.
    Whole {
        headers: HeaderMap,
        message: Sending,
        trailers: HeaderMap,
    },
    Failed(Status),
    /// Messages that come one by one.
    Started(HeaderMap),
}

impl Exchange {
    pub(crate) fn new(queue: Arc<Queue>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), queue })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes those who wait for it.
    fn change<T>(&self, interest: Interest, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        if state.waiters.is_empty() {
            return result;
        }
        let is_concerned = |of: &mut (Interest, Waiter)| of.0 & interest != 0;
        let woken: Vec<_> = state.waiters.extract_if(.., is_concerned).collect();
        drop(state);
        for (_, waiter) in woken {
            waiter.wake();
        }
        result
    }

    // The application's side.

    /// Takes a received message if there is one, and the call was not cancelled.
    pub(crate) fn take_received(&self) -> Option<Bytes> {
        let mut state = self.lock();
        if state.ended.as_ref().is_some_and(|ended| ended.is_cancelled) {
            return None;
        }
        let message = state.received.pop()?;
        let task = if state.received.queue.is_empty() { state.task.take() } else { None };
        drop(state);
        wake(task);
        Some(message)
    }

    /// Takes a received message, or keeps a waiter.
    pub(crate) fn poll_receive(&self, py: Python<'_>, poller: Poller<'_>) -> Option<Received> {
        let mut state = self.lock();
        if let Some(ended) = state.ended.as_ref().filter(|ended| ended.is_cancelled) {
            return Some(Received::Ended(Arc::clone(ended)));
        }
        if let Some(message) = state.received.pop() {
            if state.received.queue.is_empty() {
                let (settled, task) = (state.settled.take(), state.task.take());
                drop(state);
                if let Some(Settled { ended, registration }) = settled {
                    drop(registration);
                    self.end(ended);
                }
                wake(task);
            }
            return Some(Received::Message(message));
        }
        if let Some(ended) = &state.ended {
            return Some(Received::Ended(Arc::clone(ended)));
        }
        if state.received.is_over {
            return Some(Received::Over);
        }
        state.wait(MESSAGE | END, poller.waiter(py));
        None
    }

    /// Adds a message to send. [`poll_room`](Self::poll_room) waits for room for another.
    pub(crate) fn send(&self, message: Message) -> Sent {
        let mut state = self.lock();
        if state.ended.is_some() || state.to_send.is_over {
            return Sent::TooLate;
        }
        let is_compressed = !mem::take(&mut state.skips_compression);
        state.to_send.push(Sending { message, is_compressed });
        let is_awaited = state.response_start == ResponseStart::Awaited;
        let sender = if is_awaited { state.task.take() } else { state.sender.take() };
        drop(state);
        wake(sender);
        Sent::Done
    }

    /// Adds the only message to send.
    pub(crate) fn send_only(&self, message: Message) {
        let mut state = self.lock();
        if state.ended.is_none() {
            state.to_send.push(Sending { message, is_compressed: true });
        }
        state.to_send.is_over = true;
        let sender = state.sender.take();
        drop(state);
        wake(sender);
    }

    /// Returns whether there is room for a message to send.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().to_send.has_room()
    }

    /// Returns whether a connection has accepted the call, or the call has ended.
    pub(crate) fn is_connected(&self) -> bool {
        let state = self.lock();
        state.is_connected || state.ended.is_some()
    }

    /// Waits for a connection that accepts the call, or for the end.
    pub(crate) fn poll_connected(&self, py: Python<'_>, poller: Poller<'_>) -> bool {
        let mut state = self.lock();
        if state.is_connected || state.ended.is_some() {
            return true;
        }
        state.waiters.push((CONNECTION | END, poller.waiter(py)));
        false
    }

    /// Waits for room for a message to send.
    pub(crate) fn poll_room(&self, py: Python<'_>, poller: Poller<'_>) -> bool {
        let mut state = self.lock();
        if state.ended.is_some() || state.to_send.is_over || state.to_send.has_room() {
            return true;
        }
        state.wait(ROOM | END, poller.waiter(py));
        false
    }

    /// Ends the messages to send.
    pub(crate) fn done_sending(&self) {
        let mut state = self.lock();
        state.to_send.is_over = true;
        let sender = state.sender.take();
        drop(state);
        wake(sender);
    }

    /// Returns the peer's initial metadata, or that of the end, or keeps a waiter.
    pub(crate) fn poll_headers(&self, py: Python<'_>, poller: Poller<'_>) -> Option<Arc<HeaderMap>> {
        let mut state = self.lock();
        if let Some(headers) = &state.headers {
            return Some(Arc::clone(headers));
        }
        if let Some(ended) = &state.ended {
            return Some(Arc::new(ended.initial_metadata.clone()));
        }
        state.wait(HEADERS | END, poller.waiter(py));
        None
    }

    /// Returns how the call ended, or keeps a waiter.
    pub(crate) fn poll_ended(&self, py: Python<'_>, poller: Poller<'_>) -> Option<Arc<Ended>> {
        let mut state = self.lock();
        if let Some(ended) = &state.ended {
            return Some(Arc::clone(ended));
        }
        state.wait(END, poller.waiter(py));
        None
    }

    pub(crate) fn ended(&self) -> Option<Arc<Ended>> {
        self.lock().ended.clone()
    }

    /// Ends the call. Returns false if it had ended.
    pub(crate) fn end(&self, ended: Ended) -> bool {
        let state = self.lock();
        if state.ended.is_some() {
            return false;
        }
        self.publish(state, ended);
        true
    }

    /// Ends a client's call from this side, even if its I/O has ended, and drops received messages. Returns false if
    /// the call had ended.
    pub(crate) fn break_off(&self, ended: Ended) -> bool {
        let mut state = self.lock();
        if state.ended.is_some() {
            return false;
        }
        let dropped = (mem::take(&mut state.received), state.settled.take());
        self.publish(state, ended);
        drop(dropped);
        true
    }

    fn publish(&self, mut state: MutexGuard<'_, State>, ended: Ended) {
        state.ended = Some(Arc::new(ended));
        state.to_send = Messages { is_over: true, ..Messages::default() };
        let (waiters, mut callbacks) = (mem::take(&mut state.waiters), mem::take(&mut state.callbacks));
        callbacks.extend(state.on_cancel.take());
        let (task, sender) = (state.task.take(), state.sender.take());
        drop(state);
        wake(task);
        wake(sender);
        for (_, waiter) in waiters {
            waiter.wake();
        }
        for (callback, argument) in callbacks {
            self.queue.push(Completion::Call(callback, argument));
        }
    }

    /// Ends the call because a received message cannot be used, even if the server has ended it with OK. Messages that
    /// follow it are dropped.
    pub(crate) fn fail(&self, ended: Ended) {
        let mut state = self.lock();
        match &mut state.ended {
            Some(end) if end.code == Code::Ok => *end = Arc::new(ended),
            Some(_) => {}
            None => {
                drop(state);
                self.break_off(ended);
            }
        }
    }

    /// Calls `callback` with `argument` when the call has ended. Returns both if it already has.
    pub(crate) fn on_end(&self, callback: Py<PyAny>, argument: Py<PyAny>) -> Option<(Py<PyAny>, Py<PyAny>)> {
        let mut state = self.lock();
        if state.ended.is_some() {
            return Some((callback, argument));
        }
        state.callbacks.push((callback, argument));
        None
    }

    // A server's application.

    /// Calls `callback` with `argument` when the call ends before [`finish`](Self::finish). Returns both if it has
    /// ended.
    pub(crate) fn on_cancel(
        &self,
        callback: Py<PyAny>,
        argument: Py<PyAny>,
    ) -> Option<(Py<PyAny>, Py<PyAny>)> {
        let mut state = self.lock();
        if state.ended.is_some() {
            return Some((callback, argument));
        }
        if !state.is_finished {
            state.on_cancel = Some((callback, argument));
        }
        None
    }

    /// Sets the metadata to send first. Returns false if it is too late.
    pub(crate) fn send_headers(&self, headers: HeaderMap) -> bool {
        let mut state = self.lock();
        if state.headers_to_send.is_some() || state.has_started() || state.is_finished {
            return false;
        }
        state.headers_to_send = Some(headers);
        let task = state.task.take();
        drop(state);
        wake(task);
        true
    }

    /// Sets the response's compression. Returns false if it is too late.
    pub(crate) fn set_compression(&self, encoding: Encoding) -> bool {
        let mut state = self.lock();
        let is_in_time = state.headers_to_send.is_none() && !state.has_started();
        if is_in_time {
            state.compression = Some(encoding);
        }
        is_in_time
    }

    /// Sends the next message uncompressed.
    pub(crate) fn skip_compression(&self) {
        self.lock().skips_compression = true;
    }

    /// Returns the compression that the application has set.
    pub(crate) fn compression(&self) -> Option<Encoding> {
        self.lock().compression
    }

    /// Returns whether the application has ended the response.
    pub(crate) fn is_finished(&self) -> bool {
        self.lock().is_finished
    }

    /// Ends the response, with a last message if there is one. Returns false if the call had ended.
    pub(crate) fn finish(
        &self,
        code: Code,
        details: String,
        trailers: HeaderMap,
        message: Option<Message>,
    ) -> bool {
        let mut state = self.lock();
        if state.ended.is_some() || state.is_finished {
            return false;
        }
        if let Some(message) = message {
            let is_compressed = !state.skips_compression;
            state.to_send.push(Sending { message, is_compressed });
        }
        state.to_send.is_over = true;
        state.is_finished = true;
        state.response_end = Some((code, details, trailers));
        let on_cancel = state.on_cancel.take();
        let (task, sender) = (state.task.take(), state.sender.take());
        drop(state);
        wake(task);
        wake(sender);
        drop(on_cancel);
        true
    }

    /// Ends the call with a status in place of the application's. Nothing happens if it has ended.
    pub(crate) fn end_with(&self, code: Code, details: &str) {
        let mut state = self.lock();
        if state.ended.is_some() {
            return;
        }
        state.response_end = Some((code, details.to_owned(), HeaderMap::new()));
        drop(state);
        self.end(Ended::cancelled(details));
    }

    // The I/O task's side.

    /// Returns false if the call has ended, by cancellation. Keeps the task's waker.
    pub(crate) fn goes_on(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        if state.ended.is_some() {
            return false;
        }
        store(&mut state.task, cx);
        true
    }

    /// Ends the call as its I/O has ended, at once or, as in grpcio, when the last received message is taken. Returns
    /// false if there are any. Until then the call stays registered, and [`break_off`](Self::break_off) may end it
    /// otherwise.
    pub(crate) fn settle(&self, ended: Ended, registration: Registration) -> bool {
        let mut state = self.lock();
        if state.ended.is_some() || state.received.queue.is_empty() {
            drop(state);
            drop(registration);
            self.end(ended);
            return true;
        }
        state.settled = Some(Settled { ended, registration });
        drop(state);
        let sender = self.change(ROOM, |state| {
            // Nothing sends them any more.
            state.to_send = Messages { is_over: true, ..Messages::default() };
            state.sender.take()
        });
        wake(sender);
        false
    }

    /// Returns whether the I/O task waits until Python takes received messages.
    pub(crate) fn is_full(&self) -> bool {
        !self.lock().received.has_room()
    }

    pub(crate) fn received_headers(&self, headers: HeaderMap) {
        self.change(HEADERS, |state| state.headers = Some(Arc::new(headers)));
    }

    /// Moves messages that have arrived to Python's queue, as far as it has room. Ready after the last one.
    pub(crate) fn poll_fill(
        &self,
        incoming: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Status>> {
        loop {
            let mut state = self.lock();
            store(&mut state.task, cx);
            let mut room = QUEUE_LEN_MAX.saturating_sub(state.received.len);
            drop(state);
            if room == 0 {
                return Poll::Pending;
            }
            let mut arrived = Vec::new();
            let polled = loop {
                while room > 0
                    && let Some(message) = incoming.next_at_hand()
                {
                    room = room.saturating_sub(message.len() + MESSAGE_OVERHEAD);
                    arrived.push(Bytes::copy_from_slice(message));
                }
                if room == 0 {
                    break Poll::Pending;
                }
                match incoming.poll_prefix(cx) {
                    Poll::Ready(Some(Ok(prefix))) => match incoming.take(prefix).map(message::into_bytes) {
                        Ok(message) => {
                            room = room.saturating_sub(message.len() + MESSAGE_OVERHEAD);
                            arrived.push(message);
                        }
                        Err(status) => break Poll::Ready(Err(incoming.fail(status))),
                    },
                    Poll::Ready(Some(Err(status))) => break Poll::Ready(Err(status)),
                    Poll::Ready(None) => break Poll::Ready(Ok(())),
                    Poll::Pending => break Poll::Pending,
                }
            };
            let is_over = matches!(polled, Poll::Ready(Ok(())));
            if !arrived.is_empty() || is_over {
                self.change(MESSAGE, |state| {
                    // A call that has ended meanwhile has dropped those before.
                    if state.ended.is_none() {
                        for message in arrived {
                            state.received.push(message);
                        }
                    }
                    state.received.is_over |= is_over;
                });
            }
            match polled {
                // The queue is full, or was: it may have room again.
                Poll::Pending if room == 0 => {}
                polled => return polled,
            }
        }
    }

    /// Server: returns the start of the response.
    pub(crate) fn poll_response(&self, cx: &Context<'_>) -> Poll<Response> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let is_empty = state.to_send.queue.is_empty();
        match &state.response_end {
            Some((Code::Ok, ..)) if state.to_send.queue.len() == 1 => {
                if let (Some(message), Some((_, _, trailers))) =
                    (state.to_send.pop(), state.response_end.take())
                {
                    let headers = state.headers_to_send.take().unwrap_or_default();
                    return Poll::Ready(Response::Whole { headers, message, trailers });
                }
            }
            Some((code, ..)) if *code != Code::Ok && is_empty && state.headers_to_send.is_none() => {
                if let Some((code, details, trailers)) = state.response_end.take() {
                    return Poll::Ready(Response::Failed(status(code, details, trailers)));
                }
            }
            None if is_empty && state.headers_to_send.is_none() => {
                state.response_start = ResponseStart::Awaited;
                store(&mut state.task, cx);
                return Poll::Pending;
            }
            _ => {}
        }
        state.response_start = ResponseStart::Done;
        Poll::Ready(Response::Started(state.headers_to_send.take().unwrap_or_default()))
    }
}

/// Returns the status of a failed response. Details in the trailing metadata, where grpcio's users put them, are the
/// status's own: other metadata cannot have their key.
fn status(code: Code, details: String, trailers: HeaderMap) -> Status {
    let mut metadata = MetadataMap::from_headers(trailers);
    match metadata.remove_bin(DETAILS).and_then(|value| value.to_bytes().ok()) {
        Some(rich) => Status::with_details_and_metadata(code, details, rich, metadata),
        None => Status::with_metadata(code, details, metadata),
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

fn store(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *place = Some(cx.waker().clone()),
    }
}

/// The messages to send, as the engine takes them.
pub(crate) struct Outgoing(pub(crate) Arc<Exchange>);

impl Stream for Outgoing {
    type Item = Result<Sending, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.0.lock();
        if !state.is_connected {
            drop(state);
            self.0.change(CONNECTION, |state| state.is_connected = true);
            state = self.0.lock();
        }
        if let Some(message) = state.to_send.pop() {
            let has_room = state.to_send.has_room();
            drop(state);
            if has_room {
                self.0.change(ROOM, |_| ());
            }
            return Poll::Ready(Some(Ok(message)));
        }
        if state.to_send.is_over {
            return match &state.response_end {
                Some((code, details, _)) if *code != Code::Ok => {
                    let (code, details) = (*code, details.clone());
                    let trailers = state.response_end.take().map(|it| it.2).unwrap_or_default();
                    Poll::Ready(Some(Err(status(code, details, trailers))))
                }
                _ => Poll::Ready(None),
            };
        }
        store(&mut state.sender, cx);
        Poll::Pending
    }
}

impl Source for Outgoing {
    type Message = Sending;

    fn poll_fill(&mut self, cx: &mut Context<'_>, pack: &mut Pack) -> Poll<Result<(), Status>> {
        while !pack.is_full() {
            match Pin::new(&mut *self).poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Err(status)),
                Poll::Ready(Some(Ok(message))) => pack.push(&message),
            };
        }
        Poll::Pending
    }

    fn take_trailers(&mut self) -> Option<HeaderMap> {
        let trailers = self.0.lock().response_end.take()?.2;
        (!trailers.is_empty()).then_some(trailers)
    }
}
