//! What a connection keeps for one stream: its half-read messages, how it ended, and who waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use thalweg_http2::{self as http2, StreamId};
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::buffers;
use crate::grpc::envelope::{EnvelopeError, PREFIX_LEN, Prefix};
use crate::grpc::response::ResponseHead;
use crate::measure::CallMeasure;

/// Names a slot; stale once the slot is removed, even when its index is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotKey {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl SlotKey {
    /// Whether it is one of each `every`, which must be a power of two.
    #[inline]
    pub(crate) fn is_each(self, every: u32) -> bool {
        self.generation & (every - 1) == 0
    }

    /// Small, and used again after the slot was removed.
    pub(crate) fn index(self) -> usize {
        self.index as usize
    }
}

/// A message of a stream with at least this many bytes, prefix included, gets a buffer of its own.
const SEALED_LEN_MIN: usize = 32 * 1024;
/// Rests of frames with fewer bytes are not worth a read of their own.
const LENT_LEN_MIN: usize = 8 * 1024;
/// How much may be read behind what the inbox is lent for, in bytes: the head of the next frame, and small frames.
pub(crate) const BEHIND_LEN: usize = 4 * 1024;

/// One stream, seen from the gRPC side.
///
/// # Receiving
/// DATA is appended to `inbox` as it comes. The reader takes the whole inbox at once and cuts messages out of it
/// outside the lock. `needed` is how long the inbox must be before the reader can go on: it is woken then, and not
/// before, so a large message is gathered once and wakes its reader once. When more comes behind a large message that the
/// reader has not taken yet, it is sealed: it keeps its buffer, and what comes goes into another.
///
/// While a large message is gathered, the driver may borrow the inbox ([`lend`](Slot::lend)), to read into it without the lock.
///
/// The stream's receive window is given back when the reader takes what arrived. While the inbox is shorter than
/// `needed`, and the reader waits for it, it is given back at once: a message larger than the window could never arrive
/// otherwise. So a slot holds at most one window and one message of at most the permitted size; its reader may hold as much
/// again, taken before.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each asked for by itself")]
pub(crate) struct Slot {
    pub(super) generation: u32,
    pub(crate) stream: StreamId,
    /// Large messages, whole, that stand before the inbox.
    sealed: VecDeque<Sealed>,
    pub(crate) inbox: Vec<u8>,
    /// Bytes in `inbox` that the peer has not been given back yet.
    unreleased: usize,
    /// How long the last large message was that came whole: the next may have room for as much from the start.
    last_len: usize,
    /// The driver has the inbox, and brings it back.
    is_lent: bool,
    /// A reader of streams has been here. Before, and in unary calls, all that comes is one inbox.
    has_reader: bool,
    /// None while the reader has taken the inbox: what arrives then may begin in the middle of a message.
    needed: Option<usize>,
    message_size_max: usize,
    /// Nobody reads any more: what arrives is dropped, and its window given back.
    pub(crate) discard: bool,
    /// Client: the reader waits for the end of the stream alone, not for its messages.
    pub(crate) unary: bool,
    /// Client: the reader waits for the head.
    pub(crate) wake_on_head: bool,
    /// Client: the response's head.
    pub(crate) head: Option<Arc<ResponseHead>>,
    pub(crate) end: Option<End>,
    /// We have sent END_STREAM (or reset the stream): nothing more goes out.
    pub(crate) send_closed: bool,
    pub(crate) receiver: Option<Waker>,
    pub(crate) sender: Option<Waker>,
    /// Server: the head of the response has been sent.
    pub(crate) head_sent: bool,
    /// Server: a task runs the handler, and takes the slot away when it ends.
    pub(crate) task_running: bool,
    /// Server: the task that runs the handler, to be told when the call is lost.
    pub(crate) task: Option<Waker>,
    /// Server: what is measured of the call.
    pub(crate) measure: CallMeasure,
}

/// A message that is whole, in a buffer of its own.
#[derive(Debug)]
struct Sealed {
    bytes: Vec<u8>,
    unreleased: usize,
}

/// An inbox that was lent: at least `room` bytes may be read to its end, and [`BEHIND_LEN`] behind them.
pub(crate) struct Lent {
    pub(crate) inbox: Vec<u8>,
    pub(crate) room: usize,
}

/// How the peer's half of a stream ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// The peer sent all there is. On a client: the call's outcome, with the trailing metadata if there is any (boxed,
    /// because mostly there is none, and slots are moved).
    Complete(Result<Option<Box<MetadataMap>>, Status>),
    /// The stream or the connection was lost. `unprocessed`: no application has seen the call.
    Lost { status: Status, unprocessed: bool },
}

impl End {
    /// A request that has arrived whole.
    pub(crate) fn received() -> Self {
        Self::Complete(Ok(None))
    }

    /// The call's outcome, with the trailing metadata.
    pub(crate) fn outcome(self) -> Result<MetadataMap, Status> {
        match self {
            Self::Complete(outcome) => {
                outcome.map(|trailers| trailers.map_or_else(MetadataMap::new, |trailers| *trailers))
            }
            Self::Lost { status, .. } => Err(status),
        }
    }
}

impl Slot {
    pub(crate) fn new(stream: StreamId, message_size_max: usize) -> Self {
        Self {
            generation: 0,
            stream,
            sealed: VecDeque::new(),
            inbox: Vec::new(),
            unreleased: 0,
            last_len: 0,
            is_lent: false,
            has_reader: false,
            needed: Some(PREFIX_LEN),
            message_size_max,
            discard: false,
            unary: false,
            wake_on_head: false,
            head: None,
            end: None,
            send_closed: false,
            receiver: None,
            sender: None,
            head_sent: false,
            task_running: false,
            task: None,
            measure: CallMeasure::default(),
        }
    }

    /// Appends what arrived. Returns whether the reader can go on.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        http2: &mut http2::Connection,
    ) -> Result<bool, EnvelopeError> {
        if self.discard {
            http2.release(self.stream, bytes.len());
            return Ok(false);
        }
        let Some(mut needed) = self.needed else {
            self.append(bytes);
            return Ok(false);
        };
        if needed == PREFIX_LEN {
            needed = self.find_needed(bytes)?;
        }
        if needed >= SEALED_LEN_MIN && self.has_reader {
            needed = self.gather(bytes, needed)?;
        } else {
            self.append(bytes);
        }
        Ok(self.has(needed, http2))
    }

    fn append(&mut self, bytes: &[u8]) {
        self.unreleased += bytes.len();
        self.reserve(bytes.len(), 0);
        self.inbox.extend_from_slice(bytes);
    }

    /// Appends what arrived while large messages are gathered, each in a buffer of its own. Returns how long the inbox
    /// must be.
    fn gather(&mut self, mut bytes: &[u8], mut needed: usize) -> Result<usize, EnvelopeError> {
        loop {
            if needed < SEALED_LEN_MIN || self.inbox.len() > needed {
                self.append(bytes);
                return Ok(needed);
            }
            let (part, behind) = bytes.split_at(bytes.len().min(needed - self.inbox.len()));
            self.append(part);
            if behind.is_empty() {
                return Ok(needed);
            }
            self.sealed.push_back(Sealed {
                bytes: std::mem::take(&mut self.inbox),
                unreleased: std::mem::take(&mut self.unreleased),
            });
            self.last_len = needed;
            bytes = behind;
            needed = self.find_needed(bytes)?;
        }
    }

    /// Makes room for `len` bytes more in the inbox, and `behind` that don't stay. It grows as a vector grows, by doubling,
    /// but not beyond the message that it begins with: one of 4 MiB takes 4 MiB and not 8. What is merely declared
    /// allocates nothing; a buffer that was left by a message may be taken for it.
    fn reserve(&mut self, len: usize, behind: usize) {
        let filled = self.inbox.len() + len;
        if self.inbox.capacity() - self.inbox.len() >= len + behind {
            return;
        }
        match self.needed {
            Some(needed) if filled <= needed => {
                if let Some(mut buffer) = buffers::take(needed + BEHIND_LEN) {
                    buffer.extend_from_slice(&self.inbox);
                    self.inbox = buffer;
                } else {
                    let behind = if needed < SEALED_LEN_MIN { behind } else { BEHIND_LEN };
                    self.inbox.reserve_exact((2 * filled).min(needed) + behind - self.inbox.len());
                }
            }
            _ => self.inbox.reserve(len + behind),
        }
    }

    /// How long the inbox must be once `bytes` are appended to it, by the prefix at its front.
    fn find_needed(&mut self, bytes: &[u8]) -> Result<usize, EnvelopeError> {
        let prefix = if self.inbox.is_empty() {
            Prefix::parse(bytes, self.message_size_max)
        } else if self.inbox.len() >= PREFIX_LEN {
            Prefix::parse(&self.inbox, self.message_size_max)
        } else {
            let mut front = [0; PREFIX_LEN];
            let (begun, rest) = front.split_at_mut(self.inbox.len());
            begun.copy_from_slice(&self.inbox);
            let there = rest.len().min(bytes.len());
            rest[..there].copy_from_slice(&bytes[..there]);
            let len = begun.len() + there;
            Prefix::parse(&front[..len], self.message_size_max)
        };
        let needed = prefix?.map_or(PREFIX_LEN, Prefix::envelope_len);
        self.needed = Some(needed);
        Ok(needed)
    }

    /// Whether the reader can go on. If not, it waits for what comes, and the window for that is given back.
    fn has(&mut self, needed: usize, http2: &mut http2::Connection) -> bool {
        let is_there = !self.sealed.is_empty() || self.inbox.len() >= needed;
        if !is_there {
            self.release(http2);
        }
        is_there
    }

    /// Lends the inbox to the driver, which knows that the next `len` bytes are this stream's, if it is worth it: a large
    /// message is being gathered. Its capacity follows what has arrived on the stream, and so does the room that is lent: it
    /// must not depend on what buffer there was.
    pub(crate) fn lend(&mut self, len: usize) -> Option<Lent> {
        let missing = self.needed?.checked_sub(self.inbox.len())?;
        let arrived = self.inbox.len().max(self.last_len).max(2 * LENT_LEN_MIN);
        let room = len.min(missing).min(arrived);
        if room < LENT_LEN_MIN || self.discard || self.is_lent {
            return None;
        }
        self.reserve(room, BEHIND_LEN);
        self.is_lent = true;
        Some(Lent { inbox: std::mem::take(&mut self.inbox), room })
    }

    /// The driver brings the inbox back, with `len` bytes more; [`receive`](Slot::receive) is to follow.
    pub(crate) fn bring_back(&mut self, inbox: Vec<u8>, len: usize, http2: &mut http2::Connection) {
        self.is_lent = false;
        if self.discard {
            http2.release(self.stream, len);
            return;
        }
        self.inbox = inbox;
        self.unreleased += len;
    }

    /// Exchanges the oldest sealed message, or the inbox, for `buffer`, which must be empty, and gives its window back.
    pub(crate) fn take_inbox(&mut self, buffer: &mut Vec<u8>, http2: &mut http2::Connection) {
        debug_assert!(buffer.is_empty());
        if let Some(Sealed { bytes, unreleased }) = self.sealed.pop_front() {
            *buffer = bytes;
            if unreleased > 0 {
                http2.release(self.stream, unreleased);
            }
            return;
        }
        // Of one message alone the reader leaves nothing: what comes next begins with a prefix.
        if self.needed == Some(self.inbox.len()) {
            self.last_len = self.inbox.len();
            self.needed = Some(PREFIX_LEN);
        } else {
            self.needed = None;
        }
        std::mem::swap(&mut self.inbox, buffer);
        self.release(http2);
    }

    /// The reader comes back with the beginning of a message, or with nothing: it goes in front of what has arrived
    /// since, to wait for the rest. Returns whether that is there already.
    pub(crate) fn put_back(
        &mut self,
        tail: Vec<u8>,
        http2: &mut http2::Connection,
    ) -> Result<bool, EnvelopeError> {
        self.has_reader = true;
        if self.is_lent {
            // A message is being gathered, and the reader had nothing of it.
            debug_assert!(tail.is_empty());
            return Ok(!self.sealed.is_empty());
        }
        if !tail.is_empty() {
            let since = std::mem::replace(&mut self.inbox, tail);
            self.inbox.extend_from_slice(&since);
        }
        let needed = self.find_needed(&[])?;
        Ok(self.has(needed, http2))
    }

    fn release(&mut self, http2: &mut http2::Connection) {
        if self.unreleased > 0 {
            http2.release(self.stream, self.unreleased);
            self.unreleased = 0;
        }
    }

    /// The connection is over. A response that had arrived whole stays one; a handler that still runs is lost.
    pub(crate) fn end_of_connection(&mut self, status: &Status) {
        if self.task_running {
            self.end_lost(status.clone());
        } else {
            self.end(End::Lost { status: status.clone(), unprocessed: false });
        }
    }

    /// Nobody reads any more: drops what is there and what will come.
    pub(crate) fn discard(&mut self, http2: &mut http2::Connection) {
        self.discard = true;
        self.inbox = Vec::new();
        self.unreleased += self.sealed.drain(..).map(|sealed| sealed.unreleased).sum::<usize>();
        self.release(http2);
    }

    /// Server: the call is lost, even if its request had arrived whole.
    pub(crate) fn end_lost(&mut self, status: Status) {
        self.send_closed = true;
        self.end = Some(End::Lost { status, unprocessed: false });
    }

    /// Notes how the stream ended; the first end counts.
    pub(crate) fn end(&mut self, end: End) {
        if let End::Lost { .. } = end {
            self.send_closed = true;
        }
        if self.end.is_none() {
            self.end = Some(end);
        }
    }

    /// Moves the wakers of all who wait on this stream into `wake`.
    #[inline]
    pub(crate) fn wake_all(&mut self, wake: &mut Vec<Waker>) {
        for waiting in [&mut self.receiver, &mut self.sender, &mut self.task] {
            if let Some(waker) = waiting.take() {
                wake.push(waker);
            }
        }
    }
}

/// Keeps `place` holding `waker`, cloning only when it changed.
pub(crate) fn keep_waker(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(old) if old.will_wake(waker) => {}
        _ => *place = Some(waker.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::grpc::envelope;
    use crate::grpc::testing::Seeded;

    /// A reader that cuts whole messages out of what it takes, as `Incoming` does.
    #[derive(Default)]
    struct Reader {
        buffer: Vec<u8>,
        messages: Vec<Vec<u8>>,
    }

    impl Reader {
        fn read(&mut self, slot: &mut Slot, http2: &mut http2::Connection) {
            while slot.put_back(std::mem::take(&mut self.buffer), http2).unwrap() {
                slot.take_inbox(&mut self.buffer, http2);
                while let Ok(Some(prefix)) = Prefix::parse(&self.buffer, usize::MAX)
                    && self.buffer.len() >= prefix.envelope_len()
                {
                    let behind = self.buffer.split_off(prefix.envelope_len());
                    self.messages.push(std::mem::replace(&mut self.buffer, behind));
                }
            }
        }
    }

    /// Brings `wire` to a slot in pieces of random length, some of them through the inbox that is lent, while a reader comes and
    /// goes, also while it is lent.
    fn check(seed: u64, lens: &[usize]) {
        let mut random = Seeded(seed);
        let mut http2 = http2::Connection::server(http2::Config::default(), Instant::now());
        let mut slot = Slot::new(StreamId::new(1), usize::MAX);
        let mut reader = Reader::default();
        let expected: Vec<Vec<u8>> = lens
            .iter()
            .map(|&len| [&envelope::prefix(false, len).unwrap()[..], &random.bytes(len..len + 1)].concat())
            .collect();
        let wire = expected.concat();
        let mut rest = &wire[..];
        let mut lent_bytes = 0;
        while !rest.is_empty() {
            let piece = rest.len().min(random.below(1 << 16) + 1);
            if let Some(Lent { mut inbox, room }) = slot.lend(piece) {
                assert!(room <= piece);
                let len = random.below(room + 1);
                inbox.extend_from_slice(&rest[..len]);
                if random.below(2) == 0 {
                    reader.read(&mut slot, &mut http2);
                }
                slot.bring_back(inbox, len, &mut http2);
                slot.receive(&[], &mut http2).unwrap();
                rest = &rest[len..];
                lent_bytes += len;
            } else {
                slot.receive(&rest[..piece], &mut http2).unwrap();
                rest = &rest[piece..];
            }
            if random.below(3) == 0 {
                reader.read(&mut slot, &mut http2);
            }
        }
        reader.read(&mut slot, &mut http2);
        assert!(
            reader.messages == expected,
            "seed {seed}: {} messages of {}",
            reader.messages.len(),
            lens.len()
        );
        assert!(lent_bytes > 0, "seed {seed}: nothing was lent");
        assert_eq!(slot.unreleased, 0);
    }

    #[test]
    fn messages_come_through_however_they_are_cut_and_read() {
        for seed in 0..100 {
            check(seed, &[100_000, 0, 5, 70_000, 70_000, 70_000, 1, 32_763, 32_762, 200_000, 3]);
        }
    }

    #[test]
    fn nothing_is_allocated_for_what_is_merely_declared() {
        let mut http2 = http2::Connection::server(http2::Config::default(), Instant::now());
        let mut slot = Slot::new(StreamId::new(1), usize::MAX);
        slot.receive(&envelope::prefix(false, 1 << 30).unwrap(), &mut http2).unwrap();
        let Lent { inbox, room } = slot.lend(1 << 20).unwrap();
        assert_eq!(room, 2 * LENT_LEN_MIN);
        assert!(inbox.capacity() <= 64 << 10, "{} bytes", inbox.capacity());
        slot.bring_back(inbox, 0, &mut http2);
    }

    #[test]
    fn what_is_brought_back_to_a_stream_that_nobody_reads_is_dropped() {
        let mut http2 = http2::Connection::server(http2::Config::default(), Instant::now());
        let mut slot = Slot::new(StreamId::new(1), usize::MAX);
        slot.receive(&envelope::prefix(false, 100_000).unwrap(), &mut http2).unwrap();
        let Lent { mut inbox, .. } = slot.lend(100_000).unwrap();
        assert!(slot.lend(100_000).is_none(), "lent twice");
        slot.discard(&mut http2);
        inbox.extend_from_slice(&[0; 1000]);
        slot.bring_back(inbox, 1000, &mut http2);
        assert!(slot.inbox.is_empty() && slot.unreleased == 0);
        assert!(slot.lend(100_000).is_none());
    }
}
