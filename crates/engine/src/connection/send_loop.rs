//! Sends a stream's messages from their source to the connection.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use thalweg_balance::retry::ReplayAccount;
use tokio::task::coop::has_budget_remaining;
use tokio::time::Instant;

use super::outgoing::{Outgoing, hand_over};
use super::pack::{Pack, Source};
use super::shared::Connection;
use super::slot::SlotKey;
use super::unlocked::{NeedsClone, PolledTask, poll_with_waker};
use crate::chain::Chain;
use crate::measure::CallMeasure;
use crate::scheduler::{Pause, Yields, yield_now};
use crate::status::Status;

/// Bytes queued on a stream from which it accepts no more until it falls below the low-water mark.
const QUEUE_HIGH_WATER: usize = 256 * 1024;
/// Packs that one poll sends before it yields.
const PACKS_PER_POLL: usize = 8;

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
    source: S,
    pack: Pack,
    yields: Yields,
    /// Set once the source has ended; only the last pack is left to hand over.
    ended: Option<Result<(), Status>>,
    /// Whether END_STREAM goes with the last pack (a client's half-close) or trailers follow (a server).
    end_stream: bool,
    /// Client: the data handed over so far, while the call may still restart on another connection.
    handed_over: Option<HandedOver>,
}

/// Data that a call has handed over, for further attempts.
struct HandedOver {
    bytes: Vec<u8>,
    len_max: usize,
    account: ReplayAccount,
}

/// A call without a retry policy that has handed over more bytes than this can't restart. Only a race with a
/// connection's end restarts it, and copying costs time.
const HANDED_OVER_LEN_MAX: usize = 64 * 1024;

impl<S: Source> SendLoop<S> {
    pub(crate) fn new(
        connection: Arc<Connection>,
        key: SlotKey,
        source: S,
        outgoing: Outgoing,
        end_stream: bool,
        measure: CallMeasure,
    ) -> Self {
        let pack = Pack::new(outgoing, measure);
        let yields = Yields::default();
        Self { connection, key, source, pack, yields, ended: None, end_stream, handed_over: None }
    }

    /// Keeps the data handed over, up to a limit, until [`drop_handed_over`](Self::drop_handed_over). With a retry
    /// policy the limit is that of `account`.
    pub(crate) fn keep_handed_over(&mut self, account: ReplayAccount, has_policy: bool) {
        let len_max = if has_policy { usize::MAX } else { HANDED_OVER_LEN_MAX };
        self.handed_over = Some(HandedOver { bytes: Vec::new(), len_max, account });
        self.pack.measure.keep_sent();
    }

    /// Drops the data kept: the call will not restart.
    pub(crate) fn drop_handed_over(&mut self) {
        self.handed_over = None;
        self.pack.measure.drop_sent();
    }

    /// Returns whether all data handed over is still available.
    pub(crate) fn can_restart(&self) -> bool {
        self.handed_over.is_some()
    }

    /// Sends everything again on another stream, and continues there. `is_done`: the source has ended.
    pub(crate) fn restart(&mut self, connection: Arc<Connection>, key: SlotKey, is_done: bool) {
        let rest = self.pack.wire.take_parts();
        if let Some(handed_over) = &mut self.handed_over {
            self.pack.wire.push(handed_over.take());
        }
        for part in rest {
            self.pack.wire.push(part);
        }
        if is_done {
            self.ended = Some(Ok(()));
        }
        (self.connection, self.key) = (connection, key);
    }

    /// Returns the source.
    pub(crate) fn into_source(self) -> S {
        self.source
    }

    /// Returns the stream that messages are sent to.
    pub(crate) fn stream(&self) -> (Arc<Connection>, SlotKey) {
        (Arc::clone(&self.connection), self.key)
    }

    /// Returns the source, once it has ended.
    pub(crate) fn source(&mut self) -> &mut S {
        &mut self.source
    }

    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<SendOutcome> {
        for _ in 0..PACKS_PER_POLL {
            let filled = self.fill(cx);
            if filled == Filled::Yielded {
                return yield_now(cx);
            }
            match self.poll_flush(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(StreamClosed)) => return Poll::Ready(SendOutcome::StreamClosed),
                Poll::Ready(Ok(())) => {}
            }
            match self.ended.take() {
                Some(Ok(())) => return Poll::Ready(SendOutcome::Done),
                Some(Err(status)) => return Poll::Ready(SendOutcome::Failed(status)),
                None if filled == Filled::NoneAvailable => {
                    self.pack.shrink();
                    return Poll::Pending;
                }
                None => {}
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Packs messages until the pack is full or the source has none available.
    fn fill(&mut self, cx: &mut Context<'_>) -> Filled {
        if self.ended.is_some() {
            return Filled::Full;
        }
        let mut polled_again = false;
        while !self.pack.is_full() {
            let len_before = self.pack.wire.len();
            if let Poll::Ready(ended) = self.pack.poll_filled(&mut self.source, cx) {
                self.ended = Some(ended);
                break;
            }
            let made_progress = self.pack.wire.len() > len_before;
            match (polled_again, made_progress) {
                (true, true) => self.yields.confirm(),
                (true, false) => self.yields.refute(),
                (false, _) => {}
            }
            if !made_progress {
                return Filled::NoneAvailable;
            }
            if self.pack.is_full() {
                break;
            }
            match self.yields.pause(has_budget_remaining(), Instant::now) {
                Pause::Send => return Filled::NoneAvailable,
                Pause::Yield => return Filled::Yielded,
                Pause::PollAgain => polled_again = true,
            }
        }
        Filled::Full
    }

    /// Hands the pack over when the stream accepts it. Also registers the waker for a reset of the stream.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamClosed>> {
        poll_with_waker(cx, |task| self.flush(task))
    }

    #[inline]
    fn flush(&mut self, task: &mut PolledTask<'_>) -> Result<Poll<Result<(), StreamClosed>>, NeedsClone> {
        let last = self.end_stream && matches!(self.ended, Some(Ok(())));
        let mut state = self.connection.lock();
        let Some((slot, http2, _)) = state.parts(self.key) else { return Ok(Poll::Ready(Err(StreamClosed))) };
        if slot.send_closed {
            return Ok(Poll::Ready(Err(StreamClosed)));
        }
        task.store_waker_in(&mut slot.sender)?;
        if self.pack.wire.is_empty() && !last {
            return Ok(Poll::Ready(Ok(())));
        }
        if http2.queued(slot.stream) >= QUEUE_HIGH_WATER {
            return Ok(Poll::Pending);
        }
        if last {
            slot.send_closed = true;
        }
        let stream = slot.stream;
        if self.handed_over.as_mut().is_some_and(|handed_over| !handed_over.keep(&self.pack.wire)) {
            self.handed_over = None;
        }
        self.yields.sent();
        let len = self.pack.wire.len();
        let sent = hand_over(http2, stream, &mut self.pack.wire, last);
        state.note_response(len);
        state.load.completed += 1;
        state.notify_driver();
        Ok(Poll::Ready(sent.map_err(|_| StreamClosed)))
    }
}

impl HandedOver {
    /// Keeps a copy of `wire`. Returns false if that exceeds a limit.
    fn keep(&mut self, wire: &Chain) -> bool {
        let fits = self.bytes.len() + wire.len() <= self.len_max && self.account.add(wire.len());
        if fits {
            wire.copy_to(&mut self.bytes);
        }
        fits
    }

    /// Returns the data, which will be handed over again.
    fn take(&mut self) -> Bytes {
        self.account.release(self.bytes.len());
        Bytes::from(std::mem::take(&mut self.bytes))
    }
}

/// Result of filling a pack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Filled {
    /// The pack is full, or the source has ended.
    Full,
    /// The source has no message available.
    NoneAvailable,
    /// The source may have more once the runtime has polled this task again.
    Yielded,
}

/// The stream is gone.
struct StreamClosed;
