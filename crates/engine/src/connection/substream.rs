//! One of several streams that the messages of one call are sent to: [`Substream`].

use std::sync::Arc;
use std::task::{Context, Poll};

use thalweg_core::chain::Chain;

use super::outbox::{Outbox, PACKS_PER_POLL, StreamClosed, flush};
use super::pack::{PACK_LEN, Source};
use super::shared::Connection;
use super::slot::SlotKey;
use super::unlocked::poll_with_waker;
use crate::status::Status;

/// The stream of one of several attempts at a call, and its position in the messages kept. The name is gRPC Java's.
pub(crate) struct Substream {
    pub(crate) connection: Arc<Connection>,
    pub(super) key: SlotKey,
    pub(super) position: usize,
    /// END_STREAM has been handed over.
    is_done: bool,
}

/// Outcome of sending to a [`Substream`].
pub(crate) enum SubstreamOutcome {
    /// The source has ended, and everything was handed over.
    Done,
    /// The source failed, or encoding one of its messages did.
    Failed(Status),
    /// The stream is gone: reset, or its connection lost.
    StreamClosed,
    /// All that is kept was handed over, and the next messages exceed a limit of the replay buffer: the call has to
    /// [resume](super::SendLoop::resume) on this stream, unless it has failed. No other one is ahead of it.
    BufferFull,
}

impl Substream {
    pub(crate) fn new(connection: Arc<Connection>, key: SlotKey) -> Self {
        Self { connection, key, position: 0, is_done: false }
    }

    /// Returns whether the whole request has been handed over.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns whether all that `outbox` keeps has been handed over.
    pub(crate) fn has_sent_all<S>(&self, outbox: &Outbox<S>) -> bool {
        self.position == outbox.kept().len()
    }

    /// Hands over what `outbox` keeps and, when the stream accepts more, the next messages of its source, which it then
    /// keeps for the other streams.
    pub(crate) fn poll_send<S: Source>(
        &mut self,
        outbox: &mut Outbox<S>,
        cx: &mut Context<'_>,
    ) -> Poll<SubstreamOutcome> {
        if self.is_done {
            return Poll::Ready(SubstreamOutcome::Done);
        }
        for _ in 0..PACKS_PER_POLL {
            let kept_len = outbox.kept().len();
            let end = kept_len.min(self.position + PACK_LEN);
            let is_all = end == kept_len && outbox.pack.wire.is_empty();
            let last = is_all && matches!(outbox.ended, Some(Ok(())));
            match self.poll_flush(&outbox.kept()[self.position..end], last, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(StreamClosed)) => return Poll::Ready(SubstreamOutcome::StreamClosed),
                Poll::Ready(Ok(())) => (self.position, self.is_done) = (end, last),
            }
            if last {
                return Poll::Ready(SubstreamOutcome::Done);
            }
            if end < kept_len {
                continue;
            }
            if is_all && let Some(Err(status)) = &outbox.ended {
                return Poll::Ready(SubstreamOutcome::Failed(status.clone()));
            }
            if outbox.ended.is_none() {
                match outbox.pack.poll_filled(&mut outbox.source, cx) {
                    Poll::Ready(ended) => outbox.ended = Some(ended),
                    Poll::Pending if outbox.pack.wire.is_empty() => {
                        outbox.pack.shrink();
                        return Poll::Pending;
                    }
                    Poll::Pending => {}
                }
            }
            if !outbox.keep_pack() {
                return Poll::Ready(SubstreamOutcome::BufferFull);
            }
            // The streams that were polled before this one.
            cx.waker().wake_by_ref();
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Hands `data` over, with END_STREAM if it is the `last`.
    fn poll_flush(&self, data: &[u8], last: bool, cx: &mut Context<'_>) -> Poll<Result<(), StreamClosed>> {
        poll_with_waker(cx, |task| {
            let mut wire = Chain::default();
            flush(&self.connection, self.key, task, &mut wire, data.is_empty(), last, |wire| {
                wire.buffer().extend_from_slice(data);
            })
        })
    }
}
