//! Messages of one stream that go out together: [`Pack`], and where they come from: [`Source`].

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::outgoing::{Outgoing, panicked};
use crate::chain::Chain;
use crate::encode::Encode;
use crate::grpc::codec::CHAINED_LEN_MIN;
use crate::grpc::envelope::{self, PREFIX_LEN};
use crate::measure::CallMeasure;
use crate::status::Status;

/// Messages are packed until there are this many bytes: enough for a system call to be worth it, little enough that
/// the peer can start on the first while the rest is encoded. With 256 KiB queued per stream, client, server and
/// bidirectional streams of 1 KiB move 2.2, 1.5 and 1.26 times as much as with 32 KiB and 64 KiB.
const PACK_LEN: usize = 64 * 1024;

/// Where the messages of a stream come from that is sent: any stream of them, or what lends them.
pub trait Source: Stream<Item = Result<Self::Message, Status>> + Unpin {
    /// What it gives away as a stream.
    type Message: Encode;

    /// Packs the messages that are at hand until `pack` [is full](Pack::is_full). Ready when there are no more.
    ///
    /// Pending means one of two things: `pack` is full, and this is to be called again once it has been handed over; or
    /// there is no message at hand, and the task is woken when there is one.
    ///
    /// By default the messages are taken from the stream one by one. What can show a message without giving it away
    /// saves moving each of them.
    ///
    /// # Errors
    /// What the call ends with instead, once what was packed has gone out.
    fn poll_fill(&mut self, cx: &mut Context<'_>, pack: &mut Pack) -> Poll<Result<(), Status>> {
        while !pack.is_full() {
            match Pin::new(&mut *self).poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Err(status)),
                Poll::Ready(Some(Ok(message))) => {
                    pack.push(&message);
                }
            }
        }
        Poll::Pending
    }
}

/// What a stream keeps while it waits for messages.
const KEPT_CAPACITY_MAX: usize = 4 * 1024;

/// Encoded messages of one stream, which go out together.
pub struct Pack {
    pub(super) wire: Chain,
    outgoing: Outgoing,
    pub(super) measure: CallMeasure,
    /// It is full with so many bytes; with 0 when a message could not be sent.
    full_len: usize,
    failed: Option<Status>,
    /// Each message is asked for its length before it is encoded: where that decides whether it is compressed, and
    /// behind a large one, whose parts may be kept instead of copied.
    measures: bool,
    /// Bytes of the last pack: the next may have as many from the start.
    last_len: usize,
}

impl Pack {
    pub(super) fn new(outgoing: Outgoing, measure: CallMeasure) -> Self {
        Self {
            wire: Chain::default(),
            outgoing,
            measure,
            full_len: PACK_LEN,
            failed: None,
            measures: true,
            last_len: 0,
        }
    }

    /// Whether there is enough in it to be handed over: no more is to be pushed.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.wire.len() >= self.full_len
    }

    /// Encodes `message` behind those that are there. Whether there is room for another.
    ///
    /// One that can't be sent ends its call: nothing that is pushed behind it goes out.
    #[inline]
    pub fn push<M: Encode>(&mut self, message: &M) -> bool {
        if self.measures || M::IS_FRAMED {
            return self.push_measured(message);
        }
        // To measure it first is not needed to frame it, and a third of what an empty message costs.
        let start = self.wire.buffer().len();
        let mut begun = Begun { pack: self, start, is_done: false };
        let out = begun.pack.wire.buffer();
        out.extend_from_slice(&[0; PREFIX_LEN]);
        message.encode(out);
        let len = out.len().wrapping_sub(start + PREFIX_LEN);
        begun.is_done = true;
        drop(begun);
        let is_fitting = len < CHAINED_LEN_MIN && len <= self.outgoing.message_size_max;
        let (true, Ok(prefix)) = (is_fitting, envelope::prefix(false, len)) else {
            return self.push_again(message, start);
        };
        self.wire.buffer()[start..start + PREFIX_LEN].copy_from_slice(&prefix);
        message.note_encoded(Ok(len));
        self.measure.sent_message(len, || len);
        !self.is_full()
    }

    /// It is larger than was expected, or has gone back before its start.
    #[cold]
    fn push_again<M: Encode>(&mut self, message: &M, start: usize) -> bool {
        self.wire.buffer().truncate(start);
        self.push_measured(message)
    }

    #[inline(never)]
    fn push_measured<M: Encode>(&mut self, message: &M) -> bool {
        if self.full_len == 0 {
            return false;
        }
        let before = self.wire.len();
        match self.outgoing.encode(message, &mut self.wire) {
            Ok(()) => {
                let len = (self.wire.len() - before).saturating_sub(PREFIX_LEN);
                self.measures = self.outgoing.encoding.compresses() || len >= CHAINED_LEN_MIN;
                self.measure.sent_message(len, || message.encoded_len());
            }
            Err(status) => self.fail(status),
        }
        !self.is_full()
    }

    fn fail(&mut self, status: Status) {
        self.failed = Some(status);
        self.full_len = 0;
        self.measures = true;
    }

    /// Has `source` fill it. Ready when there are no more messages, or one could not be sent; else whether it is full.
    pub(super) fn poll_filled<S: Source>(
        &mut self,
        source: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Status>> {
        if self.wire.is_empty() {
            self.wire.buffer().reserve(self.last_len);
        }
        // Once for all messages of a pack. A stream's own panics go on as they would without it.
        let filled = match catch_unwind(AssertUnwindSafe(|| source.poll_fill(cx, self))) {
            Ok(filled) => filled,
            Err(panic) if self.failed.is_none() => resume_unwind(panic),
            Err(_) => Poll::Pending,
        };
        self.last_len = self.wire.buffer().len().min(PACK_LEN + CHAINED_LEN_MIN);
        match self.failed.take() {
            Some(status) => Poll::Ready(Err(status)),
            None => filled,
        }
    }

    /// It has been handed over, and no message is at hand: memory for many is not kept for those that come one by one.
    pub(super) fn rest(&mut self) {
        if self.wire.buffer().capacity() > KEPT_CAPACITY_MAX && self.wire.is_empty() {
            self.wire = Chain::default();
            self.last_len = 0;
        }
    }
}

/// A message that is being encoded: if it panics, this fails its pack. It costs a message that does not panic nothing.
struct Begun<'a> {
    pack: &'a mut Pack,
    start: usize,
    is_done: bool,
}

impl Drop for Begun<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_done {
            self.pack.wire.buffer().truncate(self.start);
            self.pack.fail(panicked());
        }
    }
}

impl fmt::Debug for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pack").field("len", &self.wire.len()).finish_non_exhaustive()
    }
}
