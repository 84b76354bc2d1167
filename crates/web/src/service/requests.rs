//! The messages in the body of a request, as they come: [`Requests`].

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

/// A body whose envelopes are read: a stream of messages as wire bytes. An error is the last that it gives.
pub(super) struct Requests {
    body: Body,
    share: RequestShare,
    envelopes: Reader,
    call: Call,
    /// Messages that were given.
    count: u64,
    /// Bytes of the message that waits for the end of the body.
    waiting_len: usize,
    /// There is no use in a part of what is missing, whatever is there.
    is_whole: bool,
    /// The body has ended.
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

    /// The one message that there should be, and what it takes.
    ///
    /// # Errors
    /// UNIMPLEMENTED, if there is none, or more than one.
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

    /// Tells what there is of messages.
    fn hold(&mut self) {
        self.share.hold(self.waiting_len + self.envelopes.len());
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Status>> {
        loop {
            // It may be compressed.
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
            // Trailers of a request say nothing.
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
