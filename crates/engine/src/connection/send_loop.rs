//! Sends a stream's messages from their source to the connection.

use std::sync::Arc;
use std::task::{Context, Poll};

use thalweg_balance::retry::ReplayAccount;

use super::outbox::{Filled, Outbox, PACKS_PER_POLL, QUEUE_HIGH_WATER, StreamClosed, flush};
use super::outgoing::Outgoing;
use super::pack::Source;
use super::shared::Connection;
use super::slot::SlotKey;
use super::substream::Substream;
use super::unlocked::{NeedsClone, PolledTask, poll_with_waker};
use crate::measure::CallMeasure;
use crate::scheduler::yield_now;
use crate::status::Status;

/// Adjusts marks of `config` to what a [`SendLoop`] supports. With a low-water mark of 0, or above its own limit, a
/// stream would never become writable again.
pub(crate) fn fit(config: thalweg_http2::Config) -> thalweg_http2::Config {
    let send_queue_low_water = config.send_queue_low_water.clamp(1, QUEUE_HIGH_WATER);
    let output_target = config.output_target.max(1);
    config.send_queue_low_water(send_queue_low_water).output_target(output_target)
}

/// Outcome of a [`SendLoop`].
#[derive(Debug)]
pub(crate) enum SendOutcome {
    /// The source has ended and all its messages were handed over.
    Done,
    /// The source failed, or encoding one of its messages did.
    Failed(Status),
    /// The stream is gone: reset, or its connection lost.
    StreamClosed,
}

/// Moves messages from a source to a stream, subject to flow control. At most one pack and the stream's queue are in
/// memory.
///
/// Messages that are ready together are packed and sent together: when the source has no more available, or the pack
/// is full. A source that [yields](crate::scheduler::Yields) has more available.
pub(crate) struct SendLoop<S> {
    connection: Arc<Connection>,
    key: SlotKey,
    /// Whether END_STREAM goes with the last pack (a client's half-close) or trailers follow (a server).
    end_stream: bool,
    outbox: Outbox<S>,
}

impl<S: Source> SendLoop<S> {
    pub(crate) fn new(
        connection: Arc<Connection>,
        key: SlotKey,
        source: S,
        outgoing: Outgoing,
        end_stream: bool,
        measure: CallMeasure,
    ) -> Self {
        Self { connection, key, end_stream, outbox: Outbox::new(source, outgoing, measure) }
    }

    /// Client: continues on one of the streams that `outbox` was sent to. The others are not continued.
    pub(crate) fn resume(mut outbox: Outbox<S>, substream: Substream) -> Self {
        let Substream { connection, key, position, .. } = substream;
        outbox.rewind(position);
        outbox.drop_handed_over();
        Self { connection, key, end_stream: true, outbox }
    }

    /// Keeps the data handed over; see [`Outbox::keep_handed_over`].
    pub(crate) fn keep_handed_over(&mut self, account: ReplayAccount, has_policy: bool) {
        self.outbox.keep_handed_over(account, has_policy);
    }

    /// Drops the data kept: the call will not restart.
    pub(crate) fn drop_handed_over(&mut self) {
        self.outbox.drop_handed_over();
    }

    /// Returns whether all data handed over is still available.
    pub(crate) fn can_restart(&self) -> bool {
        self.outbox.replay.is_some()
    }

    /// Sends everything again on another stream, and continues there. `is_done`: the source has ended.
    pub(crate) fn restart(&mut self, connection: Arc<Connection>, key: SlotKey, is_done: bool) {
        self.outbox.rewind(0);
        if is_done {
            self.outbox.ended = Some(Ok(()));
        }
        (self.connection, self.key) = (connection, key);
    }

    /// Returns the source.
    pub(crate) fn into_source(self) -> S {
        self.outbox.source
    }

    /// Returns the stream that messages are sent to.
    pub(crate) fn stream(&self) -> (Arc<Connection>, SlotKey) {
        (Arc::clone(&self.connection), self.key)
    }

    /// Returns the source, once it has ended.
    pub(crate) fn source(&mut self) -> &mut S {
        &mut self.outbox.source
    }

    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<SendOutcome> {
        for _ in 0..PACKS_PER_POLL {
            let filled = self.outbox.fill(cx);
            if filled == Filled::Yielded {
                return yield_now(cx);
            }
            match self.poll_flush(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(StreamClosed)) => return Poll::Ready(SendOutcome::StreamClosed),
                Poll::Ready(Ok(())) => {}
            }
            match self.outbox.ended.take() {
                Some(Ok(())) => return Poll::Ready(SendOutcome::Done),
                Some(Err(status)) => return Poll::Ready(SendOutcome::Failed(status)),
                None if filled == Filled::NoneAvailable => {
                    self.outbox.pack.shrink();
                    return Poll::Pending;
                }
                None => {}
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Hands the pack over when the stream accepts it. Also registers the waker for a reset of the stream.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamClosed>> {
        poll_with_waker(cx, |task| self.flush(task))
    }

    #[inline]
    fn flush(&mut self, task: &mut PolledTask<'_>) -> Result<Poll<Result<(), StreamClosed>>, NeedsClone> {
        let Outbox { pack, yields, ended, replay, .. } = &mut self.outbox;
        let last = self.end_stream && matches!(ended, Some(Ok(())));
        let is_empty = pack.wire.is_empty();
        flush(&self.connection, self.key, task, &mut pack.wire, is_empty, last, |wire| {
            if replay.as_mut().is_some_and(|replay| !replay.keep(wire)) {
                *replay = None;
            }
            yields.sent();
        })
    }
}
