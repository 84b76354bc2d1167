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
use crate::{connect, envelope, grpc_web};

/// Takes a body apart.
pub(super) trait Envelopes: Send + Unpin + 'static {
    /// Bytes that have arrived.
    fn push(&mut self, piece: Bytes);

    /// The next message, if it has arrived whole.
    fn take(&mut self) -> Result<Option<Bytes>, Status>;

    /// The body has ended.
    fn finish(&self) -> Result<(), Status>;

    /// Whether nothing of the next message has arrived.
    fn is_empty(&self) -> bool;

    /// How much has arrived of messages that were not taken, in bytes.
    fn len(&self) -> usize;
}

/// A body and what takes it apart: a stream of messages as wire bytes. An error is the last that it gives.
pub(super) struct Requests<E> {
    body: Body,
    share: RequestShare,
    envelopes: E,
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

impl<E: Envelopes> Requests<E> {
    pub(super) fn new(body: Body, envelopes: E, call: Call) -> Self {
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
            if let Some(message) = self.envelopes.take()? {
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

impl<E: Envelopes> Stream for Requests<E> {
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

impl Envelopes for connect::RequestReader {
    fn push(&mut self, piece: Bytes) {
        self.push(piece);
    }

    fn take(&mut self) -> Result<Option<Bytes>, Status> {
        self.take()
    }

    fn finish(&self) -> Result<(), Status> {
        self.finish()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn len(&self) -> usize {
        self.len()
    }
}

impl Envelopes for grpc_web::RequestReader {
    fn push(&mut self, piece: Bytes) {
        self.push(piece);
    }

    fn take(&mut self) -> Result<Option<Bytes>, Status> {
        self.take()
    }

    fn finish(&self) -> Result<(), Status> {
        self.finish()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn len(&self) -> usize {
        self.len()
    }
}

impl Envelopes for envelope::Reader {
    fn push(&mut self, piece: Bytes) {
        self.push(piece);
    }

    fn take(&mut self) -> Result<Option<Bytes>, Status> {
        // Nothing but its last message ends a request.
        Ok(self.take()?.map(|(envelope::Part::Message(message) | envelope::Part::Ending(message))| message))
    }

    fn finish(&self) -> Result<(), Status> {
        self.finish()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn len(&self) -> usize {
        self.len()
    }
}
