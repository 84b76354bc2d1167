//! The messages of a stream between their source and the stream, or several streams: [`Outbox`].

use std::task::{Context, Poll};

use bytes::Bytes;
use thalweg_balance::retry::ReplayAccount;
use thalweg_core::chain::Chain;
use tokio::task::coop::has_budget_remaining;
use tokio::time::Instant;

use super::outgoing::{Outgoing, hand_over};
use super::pack::{Pack, Source};
use super::shared::Connection;
use super::slot::SlotKey;
use super::unlocked::{NeedsClone, PolledTask};
use crate::measure::CallMeasure;
use crate::scheduler::{Pause, Yields};
use crate::status::Status;

/// Bytes queued on a stream from which it accepts no more until it falls below the low-water mark.
pub(super) const QUEUE_HIGH_WATER: usize = 256 * 1024;
/// Packs that one poll sends before it yields.
pub(super) const PACKS_PER_POLL: usize = 8;

/// A source, the messages taken from it, and those kept for further attempts at the call.
pub(crate) struct Outbox<S> {
    pub(super) source: S,
    pub(super) pack: Pack,
    pub(super) yields: Yields,
    /// Set once the source has ended; only the last pack is left to hand over.
    pub(super) ended: Option<Result<(), Status>>,
    /// Client: the data handed over so far, while the call may still have another attempt.
    pub(super) replay: Option<ReplayBuffer>,
}

/// Data that a call has handed over, for further attempts.
pub(super) struct ReplayBuffer {
    bytes: Vec<u8>,
    len_max: usize,
    account: ReplayAccount,
}

/// A call without a retry policy that has handed over more bytes than this can't restart. Only a race with a
/// connection's end restarts it, and copying costs time.
const HANDED_OVER_LEN_MAX: usize = 64 * 1024;

impl<S: Source> Outbox<S> {
    pub(crate) fn new(source: S, outgoing: Outgoing, measure: CallMeasure) -> Self {
        let pack = Pack::new(outgoing, measure);
        Self { source, pack, yields: Yields::default(), ended: None, replay: None }
    }

    /// Keeps the data handed over, up to a limit, until [`drop_handed_over`](Self::drop_handed_over). With a policy of
    /// attempts the limit is that of `account`.
    pub(crate) fn keep_handed_over(&mut self, account: ReplayAccount, has_policy: bool) {
        let len_max = if has_policy { usize::MAX } else { HANDED_OVER_LEN_MAX };
        self.replay = Some(ReplayBuffer { bytes: Vec::new(), len_max, account });
        self.pack.measure.keep_sent();
    }

    /// Drops the data kept.
    pub(super) fn drop_handed_over(&mut self) {
        self.replay = None;
        self.pack.measure.drop_sent();
    }

    /// Moves the pack to the data kept. Returns false, and leaves it, if that exceeds a limit.
    pub(super) fn keep_pack(&mut self) -> bool {
        let is_kept = self.replay.as_mut().is_some_and(|replay| replay.keep(&self.pack.wire));
        if is_kept {
            self.pack.wire.clear();
        }
        is_kept
    }

    /// Moves the data kept from `position` on to the front of the pack, to be handed over again.
    pub(super) fn rewind(&mut self, position: usize) {
        let rest = self.pack.wire.take_parts();
        if let Some(replay) = &mut self.replay {
            self.pack.wire.push(replay.take_from(position));
        }
        for part in rest {
            self.pack.wire.push(part);
        }
    }

    /// Packs messages until the pack is full or the source has none available.
    pub(super) fn fill(&mut self, cx: &mut Context<'_>) -> Filled {
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
}

impl<S> Outbox<S> {
    /// Returns all data kept.
    pub(super) fn kept(&self) -> &[u8] {
        self.replay.as_ref().map_or(&[], |replay| &replay.bytes)
    }
}

impl ReplayBuffer {
    /// Keeps a copy of `wire`. Returns false if that exceeds a limit.
    pub(super) fn keep(&mut self, wire: &Chain) -> bool {
        let fits = self.bytes.len() + wire.len() <= self.len_max && self.account.add(wire.len());
        if fits {
            wire.copy_to(&mut self.bytes);
        }
        fits
    }

    /// Removes all data, and returns it from `position` on.
    fn take_from(&mut self, position: usize) -> Bytes {
        self.account.release(self.bytes.len());
        Bytes::from(std::mem::take(&mut self.bytes)).split_off(position)
    }
}

/// Hands `wire` over to a stream when it accepts it; `prepare` completes it before. With `last`, END_STREAM follows.
/// Also registers the waker for a reset of the stream. `is_empty`: there is no data.
#[inline]
pub(super) fn flush(
    connection: &Connection,
    key: SlotKey,
    task: &mut PolledTask<'_>,
    wire: &mut Chain,
    is_empty: bool,
    last: bool,
    prepare: impl FnOnce(&mut Chain),
) -> Result<Poll<Result<(), StreamClosed>>, NeedsClone> {
    let mut state = connection.lock();
    let Some((slot, http2, _)) = state.parts(key) else { return Ok(Poll::Ready(Err(StreamClosed))) };
    if slot.send_closed {
        return Ok(Poll::Ready(Err(StreamClosed)));
    }
    task.store_waker_in(&mut slot.sender)?;
    if is_empty && !last {
        return Ok(Poll::Ready(Ok(())));
    }
    if http2.queued(slot.stream) >= QUEUE_HIGH_WATER {
        return Ok(Poll::Pending);
    }
    if last {
        slot.send_closed = true;
    }
    let stream = slot.stream;
    prepare(wire);
    let len = wire.len();
    let sent = hand_over(http2, stream, wire, last);
    state.note_response(len);
    state.load.completed += 1;
    state.notify_driver();
    Ok(Poll::Ready(sent.map_err(|_| StreamClosed)))
}

/// The stream is gone.
pub(super) struct StreamClosed;

/// Result of filling a pack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    /// The pack is full, or the source has ended.
    Full,
    /// The source has no message available.
    NoneAvailable,
    /// The source may have more once the runtime has polled this task again.
    Yielded,
}
