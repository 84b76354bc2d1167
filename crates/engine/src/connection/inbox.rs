//! What has arrived of a stream and was not read yet.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use thalweg_http2::{self as http2, StreamId};

use crate::buffers;
use crate::grpc::envelope::{EnvelopeError, PREFIX_LEN, Prefix};

/// A message of a stream with at least this many bytes, prefix included, gets a buffer of its own.
const SEALED_LEN_MIN: usize = 32 * 1024;
/// Rests of frames with fewer bytes are not worth a read of their own.
const LENT_LEN_MIN: usize = 8 * 1024;
/// How much of a frame may be read at once before as much has arrived on its stream, in bytes: a frame as it is sent
/// beside other streams. So much of a connection's memory is there for bytes that are merely declared, and not of each
/// stream's: the rest of one frame comes at a time.
const LENT_UNARRIVED_MAX: usize = 64 * 1024;
/// How much may be read behind what the inbox is lent for, in bytes: the head of the next frame, and small frames.
pub(super) const BEHIND_LEN: usize = 4 * 1024;

/// A message of gRPC's of at most this many bytes is gathered before its reader is woken; of a larger one, and of what
/// is no message, the reader has the bytes as they come. As much as a connection may hold besides.
pub(super) const GATHERED_LEN_MAX: usize = 16 << 20;

/// Received bytes of a stream that its reader has not taken.
///
/// DATA is appended to `bytes` as it comes. The reader takes them all at once and cuts messages out of it
/// outside the lock. `needed` is how many there must be before the reader can go on: it is woken then, and not
/// before, so a large message is gathered once and wakes its reader once. When more comes behind a large message that
/// the reader has not taken yet, it is sealed: it keeps its buffer, and what comes goes into another.
///
/// While a large message is gathered, the driver may borrow the bytes ([`lend`](Inbox::lend)), to read into it without
/// the lock.
///
/// The stream's receive window is given back when the reader takes what arrived. While there are fewer than
/// `needed`, and the reader waits for it, the stream asks for as much window as is missing: a message larger than the
/// window could never arrive otherwise. So an inbox holds at most one window and one message of at most the permitted
/// size; its reader may hold as much again, taken before.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    /// Large messages, whole, that stand before `bytes`. In a box, because mostly there are none, and slots are moved.
    #[expect(clippy::box_collection, reason = "a quarter of its size")]
    sealed: Option<Box<VecDeque<Sealed>>>,
    /// Bytes in `bytes` that the peer has not been given back yet.
    unreleased: usize,
    /// How long the last large message was that came whole: the next may have as much from the start.
    last_len: u32,
    /// None while the reader has taken the bytes: what arrives then may begin in the middle of a message.
    needed: Option<NonZeroUsize>,
    message_size_max: usize,
    cut: Cut,
    /// The stream was asked for window beyond its own.
    has_asked: bool,
    /// The driver has the bytes, and brings them back.
    is_lent: bool,
    /// A reader of streams has been here. Before, and in unary calls, all that comes is one inbox.
    has_reader: bool,
    /// Nobody reads any more: what arrives is dropped, and its window given back.
    is_discarded: bool,
}

/// What the reader of an inbox waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Whole messages; anything else is an error.
    Messages,
    /// Whole messages as far as there are any of the permitted size; bytes where there are none. What is wrong with
    /// them is the reader's to say.
    MessagesOrBytes,
    /// Bytes.
    Bytes,
}

/// A message that is whole, in a buffer of its own.
#[derive(Debug)]
struct Sealed {
    bytes: Vec<u8>,
    unreleased: usize,
}

/// An inbox's bytes, lent: `len_max` more may be read to their end, and [`BEHIND_LEN`] behind them.
pub(super) struct Lent {
    pub(super) bytes: Vec<u8>,
    pub(super) len_max: usize,
}

/// A length, for a guess at the next.
fn short(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl Inbox {
    pub(crate) fn new(message_size_max: usize) -> Self {
        Self::with_buffer(Vec::new(), message_size_max)
    }

    /// One that begins with `buffer`, which must be empty.
    pub(crate) fn with_buffer(buffer: Vec<u8>, message_size_max: usize) -> Self {
        debug_assert!(buffer.is_empty());
        Self {
            bytes: buffer,
            sealed: None,
            unreleased: 0,
            last_len: 0,
            needed: NonZeroUsize::new(PREFIX_LEN),
            message_size_max,
            cut: Cut::Messages,
            has_asked: false,
            is_lent: false,
            has_reader: false,
            is_discarded: false,
        }
    }

    /// Creates the inbox of a raw body, which starts with `buffer`: it must be empty. `gathers`: the body has messages
    /// of gRPC.
    pub(crate) fn raw(buffer: Vec<u8>, gathers: bool) -> Self {
        let cut = if gathers { Cut::MessagesOrBytes } else { Cut::Bytes };
        Self { cut, ..Self::with_buffer(buffer, GATHERED_LEN_MAX) }
    }

    /// One that nobody reads.
    pub(crate) fn discarded() -> Self {
        Self { is_discarded: true, ..Self::new(0) }
    }

    /// How many bytes there are, messages that are sealed left out.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether there is the beginning of a message whose rest has not come.
    pub(crate) fn has_begun_message(&self) -> bool {
        !self.bytes.is_empty() && self.needed().is_some_and(|needed| self.bytes.len() < needed)
    }

    #[inline]
    fn needed(&self) -> Option<usize> {
        self.needed.map(NonZeroUsize::get)
    }

    /// All that came for a call that is over, or of which nothing more comes.
    #[inline]
    pub(crate) fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Appends what arrived. Returns whether the reader can go on.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        stream: StreamId,
        http2: &mut http2::Connection,
    ) -> Result<bool, EnvelopeError> {
        if self.is_discarded {
            http2.release(stream, bytes.len());
            return Ok(false);
        }
        let Some(mut needed) = self.needed() else {
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
        Ok(self.has(needed, stream, http2))
    }

    /// As [`receive`](Inbox::receive), of all that comes: the peer sends nothing more.
    #[inline]
    pub(crate) fn receive_whole(
        &mut self,
        bytes: &[u8],
        stream: StreamId,
        http2: &mut http2::Connection,
    ) -> Result<(), EnvelopeError> {
        // The usual answer: one message, and nothing that would have to be given back.
        if self.bytes.is_empty()
            && self.cut == Cut::Messages
            && !self.is_discarded
            && Prefix::parse(bytes, self.message_size_max)?
                .is_some_and(|prefix| prefix.envelope_len() == bytes.len())
        {
            self.bytes.extend_from_slice(bytes);
            return Ok(());
        }
        self.receive(bytes, stream, http2).map(drop)
    }

    fn append(&mut self, bytes: &[u8]) {
        self.unreleased += bytes.len();
        self.reserve(bytes.len(), 0);
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends what arrived while large messages are gathered, each in a buffer of its own. Returns how long the inbox
    /// must be.
    fn gather(&mut self, mut bytes: &[u8], mut needed: usize) -> Result<usize, EnvelopeError> {
        loop {
            if needed < SEALED_LEN_MIN || self.bytes.len() > needed {
                self.append(bytes);
                return Ok(needed);
            }
            let (part, behind) = bytes.split_at(bytes.len().min(needed - self.bytes.len()));
            self.append(part);
            if behind.is_empty() {
                return Ok(needed);
            }
            let sealed = Sealed {
                bytes: std::mem::take(&mut self.bytes),
                unreleased: std::mem::take(&mut self.unreleased),
            };
            self.sealed.get_or_insert_default().push_back(sealed);
            self.last_len = short(needed);
            bytes = behind;
            needed = self.find_needed(bytes)?;
        }
    }

    /// Makes space for `len` bytes more in the inbox, and `behind` that don't stay. It grows as a vector grows, by
    /// doubling, but not beyond the message that it begins with: one of 4 MiB takes 4 MiB and not 8. What is merely
    /// declared allocates nothing; a buffer that was left by a message may be taken for it.
    fn reserve(&mut self, len: usize, behind: usize) {
        let filled = self.bytes.len() + len;
        if self.bytes.capacity() - self.bytes.len() >= len + behind {
            return;
        }
        match self.needed() {
            Some(needed) if filled <= needed => {
                if let Some(mut buffer) = buffers::take(needed + BEHIND_LEN) {
                    buffer.extend_from_slice(&self.bytes);
                    self.bytes = buffer;
                } else {
                    let behind = if needed < SEALED_LEN_MIN { behind } else { BEHIND_LEN };
                    self.bytes.reserve_exact((2 * filled).min(needed) + behind - self.bytes.len());
                }
            }
            _ => self.bytes.reserve(len + behind),
        }
    }

    /// How long the inbox must be once `bytes` are appended to it, by the prefix at its front.
    fn find_needed(&mut self, bytes: &[u8]) -> Result<usize, EnvelopeError> {
        if self.cut == Cut::Bytes {
            self.needed = NonZeroUsize::new(1);
            return Ok(1);
        }
        let prefix = if self.bytes.is_empty() {
            Prefix::parse(bytes, self.message_size_max)
        } else if self.bytes.len() >= PREFIX_LEN {
            Prefix::parse(&self.bytes, self.message_size_max)
        } else {
            let mut front = [0; PREFIX_LEN];
            let (begun, rest) = front.split_at_mut(self.bytes.len());
            begun.copy_from_slice(&self.bytes);
            let there = rest.len().min(bytes.len());
            rest[..there].copy_from_slice(&bytes[..there]);
            let len = begun.len() + there;
            Prefix::parse(&front[..len], self.message_size_max)
        };
        let needed = match prefix {
            Ok(prefix) => prefix.map_or(PREFIX_LEN, Prefix::envelope_len),
            Err(_) if self.cut == Cut::MessagesOrBytes => PREFIX_LEN,
            Err(error) => return Err(error),
        };
        self.needed = NonZeroUsize::new(needed);
        Ok(needed)
    }

    /// Whether the reader can go on. If not, it waits for what comes, and the stream gets window for that.
    fn has(&mut self, needed: usize, stream: StreamId, http2: &mut http2::Connection) -> bool {
        let is_there = self.has_sealed() || self.bytes.len() >= needed;
        if !is_there {
            self.has_asked = true;
            http2.need(stream, needed - self.bytes.len());
        } else if self.has_asked {
            self.has_asked = false;
            http2.need_is_met(stream);
        }
        is_there
    }

    /// Whether [`take`](Inbox::take) gives a message that is sealed.
    pub(super) fn has_sealed(&self) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| !sealed.is_empty())
    }

    /// Lends the inbox to the driver, which knows that the next `len` bytes are this stream's, if it is worth it: a
    /// large message is being gathered. Its capacity follows what has arrived on the stream, beyond a frame, and so
    /// does how much may be read into it: that must not depend on what buffer there was.
    pub(super) fn lend(&mut self, len: usize) -> Option<Lent> {
        let missing = self.needed()?.checked_sub(self.bytes.len())?;
        let arrived = self.bytes.len().max(self.last_len as usize).max(LENT_UNARRIVED_MAX);
        let len_max = len.min(missing).min(arrived);
        if len_max < LENT_LEN_MIN || self.is_discarded || self.is_lent {
            return None;
        }
        self.reserve(len_max, BEHIND_LEN);
        self.is_lent = true;
        Some(Lent { bytes: std::mem::take(&mut self.bytes), len_max })
    }

    /// The driver brings the inbox back, with `len` bytes more; [`receive`](Inbox::receive) is to follow.
    pub(super) fn bring_back(
        &mut self,
        bytes: Vec<u8>,
        len: usize,
        stream: StreamId,
        http2: &mut http2::Connection,
    ) {
        self.is_lent = false;
        if self.is_discarded {
            http2.release(stream, len);
            return;
        }
        self.bytes = bytes;
        self.unreleased += len;
    }

    /// Exchanges the oldest sealed message, or the inbox, for `buffer`, which must be empty, and gives its window back.
    pub(super) fn take(&mut self, buffer: &mut Vec<u8>, stream: StreamId, http2: &mut http2::Connection) {
        debug_assert!(buffer.is_empty());
        if let Some(Sealed { bytes, unreleased }) = self.sealed.as_mut().and_then(|sealed| sealed.pop_front())
        {
            *buffer = bytes;
            if unreleased > 0 {
                http2.release(stream, unreleased);
            }
            return;
        }
        // Of one message alone the reader leaves nothing: what comes next begins with a prefix.
        if self.needed() == Some(self.bytes.len()) {
            self.last_len = short(self.bytes.len());
            self.needed = NonZeroUsize::new(PREFIX_LEN);
        } else {
            self.needed = None;
        }
        std::mem::swap(&mut self.bytes, buffer);
        self.release(stream, http2);
    }

    /// The reader comes back with the beginning of a message, or with nothing: it goes in front of what has arrived
    /// since, to wait for the rest. Returns whether that is there already.
    pub(super) fn put_back(
        &mut self,
        tail: Vec<u8>,
        stream: StreamId,
        http2: &mut http2::Connection,
    ) -> Result<bool, EnvelopeError> {
        self.has_reader = true;
        if self.is_lent {
            // A message is being gathered, and the reader had nothing of it.
            debug_assert!(tail.is_empty());
            return Ok(self.has_sealed());
        }
        if !tail.is_empty() {
            let (since_len, capacity) = (self.bytes.len(), self.bytes.capacity());
            if capacity > tail.capacity() && capacity - since_len >= tail.len() {
                // It has a larger buffer than the reader.
                self.bytes.extend_from_slice(&tail);
                self.bytes.rotate_right(tail.len());
            } else {
                let since = std::mem::replace(&mut self.bytes, tail);
                self.bytes.extend_from_slice(&since);
            }
        }
        let needed = self.find_needed(&[])?;
        Ok(self.has(needed, stream, http2))
    }

    /// As [`put_back`](Inbox::put_back), of a reader that waits for something else from now on.
    pub(super) fn put_back_for(
        &mut self,
        cut: Cut,
        tail: Vec<u8>,
        stream: StreamId,
        http2: &mut http2::Connection,
    ) -> Result<bool, EnvelopeError> {
        self.cut = cut;
        self.put_back(tail, stream, http2)
    }

    /// What has come counts as used up.
    pub(crate) fn release(&mut self, stream: StreamId, http2: &mut http2::Connection) {
        if self.unreleased > 0 {
            http2.release(stream, self.unreleased);
            self.unreleased = 0;
        }
    }

    /// Nobody reads any more: drops what is there and what will come.
    pub(crate) fn discard(&mut self, stream: StreamId, http2: &mut http2::Connection) {
        self.is_discarded = true;
        self.bytes = Vec::new();
        let sealed = self.sealed.take().into_iter().flat_map(|sealed| *sealed);
        self.unreleased += sealed.map(|sealed| sealed.unreleased).sum::<usize>();
        self.release(stream, http2);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::grpc::envelope;
    use crate::grpc::testing::Seeded;

    const STREAM: StreamId = StreamId::new(1);

    /// A reader that cuts whole messages out of what it takes, as `Incoming` does.
    #[derive(Default)]
    struct Reader {
        buffer: Vec<u8>,
        messages: Vec<Vec<u8>>,
    }

    impl Reader {
        fn read(&mut self, inbox: &mut Inbox, http2: &mut http2::Connection) {
            while inbox.put_back(std::mem::take(&mut self.buffer), STREAM, http2).unwrap() {
                inbox.take(&mut self.buffer, STREAM, http2);
                while let Ok(Some(prefix)) = Prefix::parse(&self.buffer, usize::MAX)
                    && self.buffer.len() >= prefix.envelope_len()
                {
                    let behind = self.buffer.split_off(prefix.envelope_len());
                    self.messages.push(std::mem::replace(&mut self.buffer, behind));
                }
            }
        }
    }

    /// Brings `wire` to an inbox in pieces of random length, some of them through the inbox that is lent, while a
    /// reader comes and goes, also while it is lent.
    fn check(seed: u64, lens: &[usize]) {
        let mut random = Seeded(seed);
        let mut http2 = http2::Connection::server(http2::Config::default(), Instant::now());
        let mut inbox = Inbox::new(usize::MAX);
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
            if let Some(Lent { mut bytes, len_max }) = inbox.lend(piece) {
                assert!(len_max <= piece);
                let len = random.below(len_max + 1);
                bytes.extend_from_slice(&rest[..len]);
                if random.below(2) == 0 {
                    reader.read(&mut inbox, &mut http2);
                }
                inbox.bring_back(bytes, len, STREAM, &mut http2);
                inbox.receive(&[], STREAM, &mut http2).unwrap();
                rest = &rest[len..];
                lent_bytes += len;
            } else {
                inbox.receive(&rest[..piece], STREAM, &mut http2).unwrap();
                rest = &rest[piece..];
            }
            if random.below(3) == 0 {
                reader.read(&mut inbox, &mut http2);
            }
        }
        reader.read(&mut inbox, &mut http2);
        assert!(
            reader.messages == expected,
            "seed {seed}: {} messages of {}",
            reader.messages.len(),
            lens.len()
        );
        assert!(lent_bytes > 0, "seed {seed}: nothing was lent");
        assert_eq!(inbox.unreleased, 0);
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
        let mut inbox = Inbox::new(usize::MAX);
        inbox.receive(&envelope::prefix(false, 1 << 30).unwrap(), STREAM, &mut http2).unwrap();
        let Lent { bytes, len_max } = inbox.lend(1 << 20).unwrap();
        assert_eq!(len_max, LENT_UNARRIVED_MAX);
        assert!(bytes.capacity() <= 256 << 10, "{} bytes", bytes.capacity());
        inbox.bring_back(bytes, 0, STREAM, &mut http2);
    }

    /// How much each read may take of a message that comes in frames of `frame_len` bytes, as far as it is lent.
    fn lent(message_len: usize, frame_len: usize) -> Vec<usize> {
        let mut http2 = http2::Connection::server(http2::Config::default(), Instant::now());
        let mut inbox = Inbox::new(usize::MAX);
        let wire = [&envelope::prefix(false, message_len).unwrap()[..], &vec![0; message_len]].concat();
        let mut lens = Vec::new();
        for frame in wire.chunks(frame_len) {
            // Its first bytes come with what was read before.
            let (front, mut rest) = frame.split_at(frame.len().min(BEHIND_LEN));
            inbox.receive(front, STREAM, &mut http2).unwrap();
            while let Some(Lent { mut bytes, len_max }) = inbox.lend(rest.len()) {
                lens.push(len_max);
                bytes.extend_from_slice(&rest[..len_max]);
                rest = &rest[len_max..];
                inbox.bring_back(bytes, len_max, STREAM, &mut http2);
            }
            inbox.receive(rest, STREAM, &mut http2).unwrap();
        }
        assert_eq!(inbox.bytes.len(), wire.len());
        lens
    }

    #[test]
    fn a_frame_of_a_new_stream_is_read_at_once() {
        const REST: usize = (64 << 10) - BEHIND_LEN;
        // What is left of the last frame is the prefix.
        assert_eq!(lent(64 << 10, 64 << 10), [REST]);
        assert_eq!(lent(256 << 10, 64 << 10), [REST; 4]);
        // A larger one by what has arrived.
        let large = 1 << 20;
        assert_eq!(lent(large, large), [64 << 10, 68 << 10, 136 << 10, 272 << 10, 480 << 10]);
    }

    #[test]
    fn what_is_brought_back_to_a_stream_that_nobody_reads_is_dropped() {
        let mut http2 = http2::Connection::server(http2::Config::default(), Instant::now());
        let mut inbox = Inbox::new(usize::MAX);
        inbox.receive(&envelope::prefix(false, 100_000).unwrap(), STREAM, &mut http2).unwrap();
        let Lent { mut bytes, .. } = inbox.lend(100_000).unwrap();
        assert!(inbox.lend(100_000).is_none(), "lent twice");
        inbox.discard(STREAM, &mut http2);
        bytes.extend_from_slice(&[0; 1000]);
        inbox.bring_back(bytes, 1000, STREAM, &mut http2);
        assert!(inbox.is_empty() && inbox.unreleased == 0);
        assert!(inbox.lend(100_000).is_none());
    }
}
