//! Shared state of an in-process streaming call and its caller: [`LocalExchange`].

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;

use super::local_response::{LocalOutcome, LocalResponse};
use crate::connection::{LocalRequests, poll_with_waker};
use crate::measure::CallMeasure;
use crate::status::{Code, Status};

/// Responses that wait for the caller, in bytes. The sending handler waits beyond this.
pub(in crate::server) const OUTBOX_LEN_MAX: usize = 64 * 1024;
/// Overhead counted per message.
const MESSAGE_OVERHEAD: usize = size_of::<Bytes>();

pub(in crate::server) type RequestStream = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

/// Queue of requests for the handler and responses for the caller. User code never runs under its lock.
pub(in crate::server) struct LocalExchange {
    state: Mutex<ExchangeState>,
    pub(in crate::server) measure: CallMeasure,
}

#[derive(Default)]
struct ExchangeState {
    /// `None` while a reader polls it, after the last request, and once discarded.
    requests: Option<RequestStream>,
    are_requests_over: bool,
    outbox: VecDeque<Bytes>,
    /// Bytes in `outbox` with the overhead.
    outbox_len: usize,
    headers: Option<HeaderMap>,
    end: Option<LocalOutcome>,
    /// The caller has received everything or dropped the call.
    is_over: bool,
    /// The caller found nothing and waits.
    is_awaited: bool,
    caller: Option<Waker>,
    reader: Option<Waker>,
    sender: Option<Waker>,
}

/// The caller's next item.
pub(in crate::server) enum Next {
    Message(Bytes),
    Ended(LocalOutcome),
}

impl LocalExchange {
    pub(in crate::server) fn new(measure: CallMeasure) -> Self {
        Self { state: Mutex::default(), measure }
    }

    /// Sets the requests for the handler.
    pub(in crate::server) fn set_requests(&self, requests: RequestStream) {
        self.lock().requests = Some(requests);
    }

    fn lock(&self) -> MutexGuard<'_, ExchangeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the initial metadata of the response.
    pub(in crate::server) fn put_headers(&self, headers: HeaderMap) {
        let mut state = self.lock();
        state.headers = Some(headers);
        let caller = state.awaiting();
        drop(state);
        wake(caller);
    }

    /// Waits for room for a message. Returns false if the call has ended.
    pub(in crate::server) fn poll_room(&self, cx: &Context<'_>) -> Poll<bool> {
        poll_with_waker(cx, |task| {
            let mut state = self.lock();
            if state.is_over || state.end.is_some() {
                return Ok(Poll::Ready(false));
            }
            task.store_waker_in(&mut state.sender)?;
            Ok(if state.outbox_len < OUTBOX_LEN_MAX { Poll::Ready(true) } else { Poll::Pending })
        })
    }

    pub(in crate::server) fn put_message(&self, message: Bytes) {
        let mut state = self.lock();
        if state.is_over {
            return;
        }
        state.outbox_len += message.len() + MESSAGE_OVERHEAD;
        state.outbox.push_back(message);
        let caller = state.awaiting();
        drop(state);
        wake(caller);
    }

    /// Responds with a single message.
    pub(in crate::server) fn respond(&self, response: LocalResponse) {
        self.measure.sent(response.message.len());
        self.put_headers(response.metadata);
        self.put_message(response.message);
        self.end(Ok(response.trailers));
    }

    /// Ends the call. Only the first end counts.
    pub(in crate::server) fn end(&self, end: LocalOutcome) {
        let code = end.as_ref().map_or_else(Status::code, |_| Code::Ok);
        let mut state = self.lock();
        if state.is_over || state.end.is_some() {
            return;
        }
        state.end = Some(end);
        let caller = state.awaiting();
        drop(state);
        self.measure.end(code);
        wake(caller);
    }

    pub(in crate::server) fn has_ended(&self) -> bool {
        let state = self.lock();
        state.is_over || state.end.is_some()
    }

    /// Takes the initial metadata, or the status that replaces it.
    pub(in crate::server) fn take_headers(&self) -> Option<Result<HeaderMap, Status>> {
        let mut state = self.lock();
        if let Some(headers) = state.headers.take() {
            return Some(Ok(headers));
        }
        match state.end.as_ref()? {
            Ok(_) => Some(Ok(HeaderMap::new())),
            Err(_) => state.end.take(),
        }
    }

    /// Takes the oldest message, or the end after the last one.
    pub(in crate::server) fn take_next(&self) -> Option<Next> {
        let mut state = self.lock();
        if let Some(message) = state.outbox.pop_front() {
            state.outbox_len -= message.len() + MESSAGE_OVERHEAD;
            let sender = if state.outbox.is_empty() { state.sender.take() } else { None };
            drop(state);
            wake(sender);
            return Some(Next::Message(message));
        }
        state.end.take().map(Next::Ended)
    }

    /// Registers the caller to be woken when there is more to take.
    pub(in crate::server) fn wait(&self, cx: &Context<'_>) {
        poll_with_waker(cx, |task| {
            let mut state = self.lock();
            task.store_waker_in(&mut state.caller)?;
            state.is_awaited = true;
            Ok(())
        });
    }

    /// Unregisters the caller, which polls again.
    pub(in crate::server) fn stop_waiting(&self) {
        self.lock().is_awaited = false;
    }

    /// Closes the call and wakes its reader and sender.
    pub(in crate::server) fn close(&self) {
        let mut state = self.lock();
        state.is_over = true;
        let requests = state.discard_requests();
        let (reader, sender) = (state.reader.take(), state.sender.take());
        let left = (std::mem::take(&mut state.outbox), state.headers.take(), state.end.take());
        drop(state);
        drop((requests, left));
        wake(reader);
        wake(sender);
    }
}

impl ExchangeState {
    /// Returns the caller's waker if it waits.
    fn awaiting(&mut self) -> Option<Waker> {
        if std::mem::take(&mut self.is_awaited) { self.caller.take() } else { None }
    }

    fn discard_requests(&mut self) -> Option<RequestStream> {
        self.are_requests_over = true;
        self.requests.take()
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl fmt::Debug for LocalExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalExchange").finish_non_exhaustive()
    }
}

impl LocalRequests for LocalExchange {
    fn poll_request(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        let over = || Poll::Ready(Some(Err(Status::new(Code::Cancelled, "the call has ended"))));
        let polled_state = poll_with_waker(cx, |task| {
            let mut state = self.lock();
            if state.is_over {
                return Ok(None);
            }
            task.store_waker_in(&mut state.reader)?;
            Ok(Some((state.requests.take(), state.are_requests_over)))
        });
        let mut requests = match polled_state {
            None => return over(),
            Some((Some(requests), _)) => requests,
            Some((None, true)) => return Poll::Ready(None),
            Some((None, false)) => {
                // Another reader polls the stream.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        };
        let polled = requests.as_mut().poll_next(cx);
        let mut state = self.lock();
        if state.is_over {
            drop(state);
            return over();
        }
        state.are_requests_over |= matches!(polled, Poll::Ready(None | Some(Err(_))));
        if !state.are_requests_over {
            state.requests = Some(requests);
        }
        polled
    }

    fn discard(&self) {
        let mut state = self.lock();
        let requests = state.discard_requests();
        drop(state);
        drop(requests);
    }
}
