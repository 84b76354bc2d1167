//! The messages in a request body: [`EnvelopedRequests`].

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http_body::Body as _;
use thalweg_engine::{RequestAccounting, Status, wire};

use super::call::MethodCall;
use crate::body::Body;
use crate::envelope::EnvelopeReader;

/// A stream of messages as wire bytes, from an enveloped body. An error is the last item.
pub(super) struct EnvelopedRequests {
    body: Body,
    accounting: RequestAccounting,
    envelopes: EnvelopeReader,
    call: MethodCall,
    /// Number of messages returned.
    count: u64,
    /// Size of the message that waits for the end of the body, in bytes.
    pending_len: usize,
    /// Whether the body is useful only if complete.
    is_unary: bool,
    has_body_ended: bool,
    has_failed: bool,
}

impl EnvelopedRequests {
    pub(super) fn new(body: Body, envelopes: EnvelopeReader, call: MethodCall) -> Self {
        let accounting = body.memory_accounting();
        Self {
            body,
            accounting,
            envelopes,
            call,
            count: 0,
            pending_len: 0,
            is_unary: false,
            has_body_ended: false,
            has_failed: false,
        }
    }

    /// Returns the only message and its memory accounting.
    ///
    /// # Errors
    /// UNIMPLEMENTED if there is not exactly one message.
    pub(super) async fn single_message(mut self) -> Result<(Bytes, RequestAccounting), Status> {
        self.is_unary = true;
        let message = poll_fn(|cx| self.poll(cx)).await?.ok_or_else(wire::no_message)?;
        self.pending_len = message.len();
        self.update_accounting();
        match poll_fn(|cx| self.poll(cx)).await? {
            None => Ok((message, self.accounting)),
            Some(_) => Err(wire::more_than_one_message()),
        }
    }

    /// Updates the memory accounting.
    fn update_accounting(&mut self) {
        self.accounting.set_bytes(self.pending_len + self.envelopes.len());
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Status>> {
        loop {
            // Waits for a turn, since the message may be compressed.
            ready!(self.accounting.poll_turn(cx));
            if let Some(message) = self.envelopes.message()? {
                self.accounting.decoded(message.len());
                self.update_accounting();
                self.count += u64::from(!self.is_unary);
                return Poll::Ready(self.call.read(message).map(Some));
            }
            if self.has_body_ended {
                return Poll::Ready(Ok(None));
            }
            let is_part_expected = self.is_unary || !self.envelopes.is_empty();
            self.body.expect_part(is_part_expected.then_some(self.count));
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
                self.has_body_ended = true;
                self.envelopes.finish()?;
                continue;
            };
            // Request trailers are ignored.
            if let Ok(piece) = frame?.into_data() {
                self.envelopes.push(piece);
                self.update_accounting();
            }
        }
    }
}

impl Stream for EnvelopedRequests {
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
