//! Messages of one stream that are sent together: [`Pack`], and their source: [`Source`].

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use http::HeaderMap;
use thalweg_core::chain::Chain;

use super::outgoing::{Outgoing, panicked};
use crate::encode::Encode;
use crate::grpc::codec::CHAINED_LEN_MIN;
use crate::grpc::envelope::{self, PREFIX_LEN};
use crate::measure::CallMeasure;
use crate::status::Status;

/// Messages are packed up to this size: enough for a system call to pay off, but little enough that the peer can start
/// on the first while the rest is encoded. With 256 KiB queued per stream, 1 KiB messages move 2.2 (client
/// streams), 1.5 (server) and 1.26 times (bidirectional) as fast as with 32 KiB and 64 KiB.
pub(super) const PACK_LEN: usize = 64 * 1024;

/// Source of the messages that a stream sends: any stream of them, or a type that lends them.
pub trait Source: Stream<Item = Result<Self::Message, Status>> + Unpin {
    /// The item type of the stream.
    type Message: Encode;

    /// Packs the available messages until `pack` [is full](Pack::is_full). Ready when there are no more.
    ///
    /// Pending means one of two things: `pack` is full, and this is called again once it has been handed over; or no
    /// message is available, and the task is woken when there is one.
    ///
    /// By default the messages are taken from the stream one by one. A source that can lend a message saves moving it.
    ///
    /// # Errors
    /// The status to end the call with, once the packed messages have been sent.
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

    /// Server: returns trailing metadata that is known only now, when the source has ended or failed; none by default.
    fn take_trailers(&mut self) -> Option<HeaderMap> {
        None
    }
}

/// Capacity that a stream keeps while it waits for messages, in bytes.
const IDLE_CAPACITY_MAX: usize = 4 * 1024;

/// Encoded messages of one stream, to be sent together.
pub struct Pack {
    pub(super) wire: Chain,
    outgoing: Outgoing,
    pub(super) measure: CallMeasure,
    /// Length from which the pack is full, in bytes; 0 when a message could not be sent.
    full_len: usize,
    failed: Option<Status>,
    /// Whether each message's length is computed before encoding. Needed where the length decides about compression,
    /// and after a large message, whose parts may be kept instead of copied.
    measures: bool,
    /// Bytes of the last pack, reserved for the next.
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

    /// Returns whether the pack is ready to be handed over. Push no more messages then.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.wire.len() >= self.full_len
    }

    /// Encodes `message` after the others. Returns whether there is room for another.
    ///
    /// A message that can't be sent ends its call: messages pushed after it are not sent.
    #[inline]
    pub fn push<M: Encode>(&mut self, message: &M) -> bool {
        if self.measures || M::IS_FRAMED {
            return self.push_measured(message);
        }
        // Framing needs no measuring first, which is a third of the cost of an empty message.
        let start = self.wire.buffer().len();
        let mut started = StartedMessage { pack: self, start, is_done: false };
        let out = started.pack.wire.buffer();
        out.extend_from_slice(&[0; PREFIX_LEN]);
        message.encode(out);
        let len = out.len().wrapping_sub(start + PREFIX_LEN);
        started.is_done = true;
        drop(started);
        let is_fitting = len < CHAINED_LEN_MIN && len <= self.outgoing.message_size_max;
        let (true, Ok(prefix)) = (is_fitting, envelope::prefix(false, len)) else {
            return self.push_again(message, start);
        };
        self.wire.buffer()[start..start + PREFIX_LEN].copy_from_slice(&prefix);
        message.note_encoded(Ok(len));
        self.measure.sent_message(len, || len);
        !self.is_full()
    }

    /// Called when the message is larger than expected, or its encoder has truncated the buffer.
    #[cold]
    fn push_again<M: Encode>(&mut self, message: &M, start: usize) -> bool {
        self.wire.buffer().truncate(start);
        self.push_measured(message)
    }

    /// Lets `append` add messages with prefixes until the pack is full, whose length it gets, and report their lengths.
    pub(crate) fn append<R>(
        &mut self,
        append: impl FnOnce(&mut Chain, usize, &mut dyn FnMut(usize)) -> R,
    ) -> R {
        let Self { wire, full_len, measure, .. } = self;
        append(wire, *full_len, &mut |len| measure.sent_message(len, || len))
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

    /// Lets `source` fill the pack. Ready when there are no more messages or one could not be sent; pending otherwise.
    pub(super) fn poll_filled<S: Source>(
        &mut self,
        source: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Status>> {
        if self.wire.is_empty() {
            self.wire.buffer().reserve(self.last_len);
        }
        // Once for all messages of a pack. The source's own panics are passed on.
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

    /// Frees memory for many messages, once the pack was handed over and no message is available. Messages that come
    /// one by one don't need it.
    pub(super) fn shrink(&mut self) {
        if self.wire.buffer().capacity() > IDLE_CAPACITY_MAX && self.wire.is_empty() {
            self.wire = Chain::default();
            self.last_len = 0;
        }
    }
}

/// A message being encoded: a panic fails its pack. Costs nothing without a panic.
struct StartedMessage<'a> {
    pack: &'a mut Pack,
    start: usize,
    is_done: bool,
}

impl Drop for StartedMessage<'_> {
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
