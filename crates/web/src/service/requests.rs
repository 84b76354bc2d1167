//! The messages in a request body: [`Requests`].

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http_body::Body as _;
use thalweg_engine::{RequestShare, Status, wire};

use super::call::Call;
use crate::body::Body;
use crate::envelope::Reader;

/// A stream of messages as wire bytes, from an enveloped body. An error is the last item.
pub(super) struct Requests {
    body: Body,
    share: RequestShare,
    envelopes: Reader,
    call: Call,
    /// Number of messages returned.
    count: u64,
    /// Size of the message that waits for the end of the body, in bytes.
    waiting_len: usize,
    /// Whether the body is useful only if complete.
    is_whole: bool,
    is_over: bool,
    has_failed: bool,
}

impl Requests {
    pub(super) fn new(body: Body, envelopes: Reader, call: Call) -> Self {
        let share = body.share();
        Self {
            body,
            share,
            envelopes,
            call,
            count: 0,
            waiting_len: 0,
            is_whole: false,
            is_over: false,
            has_failed: false,
        }
    }

    /// Returns the only message and its memory accounting.
    ///
    /// # Errors
    /// UNIMPLEMENTED if there is not exactly one message.
    pub(super) async fn only(mut self) -> Result<(Bytes, RequestShare), Status> {
        self.is_whole = true;
        let message = poll_fn(|cx| self.poll(cx)).await?.ok_or_else(wire::no_message)?;
        self.waiting_len = message.len();
        self.hold();
        match poll_fn(|cx| self.poll(cx)).await? {
            None => Ok((message, self.share)),
            Some(_) => Err(wire::more_than_one_message()),
        }
    }

    /// Updates the memory accounting.
    fn hold(&mut self) {
        self.share.hold(self.waiting_len + self.envelopes.len());
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Status>> {
        loop {
            // Waits for a turn, since the message may be compressed.
            ready!(self.share.poll_turn(cx));
            if let Some(message) = self.envelopes.message()? {
                self.share.decoded(message.len());
                self.hold();
                self.count += u64::from(!self.is_whole);
                return Poll::Ready(self.call.read(message).map(Some));
            }
            if self.is_over {
                return Poll::Ready(Ok(None));
            }
            let is_awaited = self.is_whole || !self.envelopes.is_empty();
            self.body.awaits(is_awaited.then_some(self.count));
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
                self.is_over = true;
                self.envelopes.finish()?;
                continue;
            };
            // Request trailers are ignored.
            if let Ok(piece) = frame?.into_data() {
                self.envelopes.push(piece);
                self.hold();
            }
        }
    }
}

impl Stream for Requests {
    type Item = Result<Bytes, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.has_failed {
            return Poll::Ready(None);
        }
        let polled = ready!(this.poll(cx));
        this.has_failed = polled.is_err();
        Poll::Ready(polled.transpose())
    }
}
