//! Received data of a stream that has not been read yet.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use thalweg_http2::{self as http2, StreamId};

use crate::buffers;
use crate::grpc::envelope::{EnvelopeError, PREFIX_LEN, Prefix};

/// A message of at least this many bytes, prefix included, gets a buffer of its own.
const OWN_BUFFER_LEN_MIN: usize = 32 * 1024;
/// Shorter rests of a frame are not worth a read of their own, in bytes.
const DIRECT_READ_LEN_MIN: usize = 8 * 1024;
/// Maximum bytes of a frame that may be read at once before as much has arrived on its stream: a typical frame next to
/// other streams. Only one frame at a time is incomplete, so this memory for merely declared bytes is needed once per
/// connection, not per stream.
const DIRECT_READ_UNARRIVED_MAX: usize = 64 * 1024;
/// Maximum bytes to read beyond those of the lent inbox: the next frame header, and small frames.
pub(super) const READ_AHEAD_LEN: usize = 4 * 1024;

/// Maximum length of a gRPC message that is gathered before its reader is woken. Bytes of a larger message, and
/// invalid ones, are passed on as they arrive. Equals the buffer limit of the rest of a connection.
pub(super) const GATHERED_LEN_MAX: usize = 16 << 20;

/// Received bytes of a stream that its reader has not taken.
///
/// DATA is appended to `bytes`. The reader takes all of them and splits them into messages outside the lock. It is
/// woken only when there are `needed` bytes, so a large message is gathered once and wakes its reader once. When more
/// arrives after a complete large message that was not taken yet, the message keeps its buffer, and new data goes into
/// another.
///
/// While a large message is gathered, the driver may borrow the bytes ([`lend`](Inbox::lend)) and read into them
/// without the lock.
///
/// The stream's receive window is released when the reader takes the data. While a waiting reader needs more bytes,
/// the stream requests the missing window: a message larger than the window could never arrive otherwise. So an inbox
/// holds at most one window and one message of the permitted size. Its reader may hold as much again, taken before.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    /// Complete large messages in front of `bytes`. Boxed, because mostly there are none, and slots are moved.
    #[expect(clippy::box_collection, reason = "saves a quarter of its size")]
    complete: Option<Box<VecDeque<CompleteMessage>>>,
    /// Bytes in `bytes` whose window has not been released yet.
    unreleased: usize,
    /// Length of the last complete large message; the initial capacity for the next.
    last_len: u32,
    /// `None` while the reader has the bytes: data that arrives then may begin in the middle of a message.
    needed: Option<NonZeroUsize>,
    message_size_max: usize,
    unit: ReadUnit,
    /// Whether additional window was requested for the stream.
    requires_bytes: bool,
    /// Whether the driver has borrowed the bytes.
    is_lent: bool,
    /// Whether a streaming reader has read. Before, and in unary calls, everything stays in one buffer.
    has_reader: bool,
    /// Whether received data is dropped and its window released, because there is no reader any more.
    is_discarded: bool,
}

/// Unit that the reader of an inbox waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadUnit {
    /// Whole messages; anything else is an error.
    Messages,
    /// Whole messages up to the maximum size, otherwise bytes. The reader reports errors in them.
    MessagesOrBytes,
    /// Bytes.
    Bytes,
}

/// A complete message in a buffer of its own.
#[derive(Debug)]
struct CompleteMessage {
    bytes: Vec<u8>,
    unreleased: usize,
}

/// The lent bytes of an inbox. Up to `len_max` more bytes may be appended, and [`READ_AHEAD_LEN`] of other data after
/// them.
pub(super) struct LentInbox {
    pub(super) bytes: Vec<u8>,
    pub(super) len_max: usize,
}

/// Converts a length for an estimate of the next, saturating.
fn short(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl Inbox {
    pub(crate) fn new(message_size_max: usize) -> Self {
        Self::with_buffer(Vec::new(), message_size_max)
    }

    /// Creates an inbox that starts with `buffer`, which must be empty.
    pub(crate) fn with_buffer(buffer: Vec<u8>, message_size_max: usize) -> Self {
        debug_assert!(buffer.is_empty());
        Self {
            bytes: buffer,
            complete: None,
            unreleased: 0,
            last_len: 0,
            needed: NonZeroUsize::new(PREFIX_LEN),
            message_size_max,
            unit: ReadUnit::Messages,
            requires_bytes: false,
            is_lent: false,
            has_reader: false,
            is_discarded: false,
        }
    }

    /// Creates the inbox of a raw body, which starts with `buffer`: it must be empty. `gathers`: the body consists of
    /// gRPC messages.
    pub(crate) fn raw(buffer: Vec<u8>, gathers: bool) -> Self {
        let unit = if gathers { ReadUnit::MessagesOrBytes } else { ReadUnit::Bytes };
        Self { unit, ..Self::with_buffer(buffer, GATHERED_LEN_MAX) }
    }

    /// Creates an inbox without a reader.
    pub(crate) fn discarded() -> Self {
        Self { is_discarded: true, ..Self::new(0) }
    }

    /// Returns the number of bytes, without complete large messages.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns whether there is an incomplete message.
    pub(crate) fn has_incomplete_message(&self) -> bool {
        !self.bytes.is_empty() && self.needed().is_some_and(|needed| self.bytes.len() < needed)
    }

    #[inline]
    fn needed(&self) -> Option<usize> {
        self.needed.map(NonZeroUsize::get)
    }

    /// Takes all bytes of a call that is over or receives nothing more.
    #[inline]
    pub(crate) fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Appends received bytes. Returns whether the reader can continue.
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
        if needed >= OWN_BUFFER_LEN_MIN && self.has_reader {
            needed = self.gather(bytes, needed)?;
        } else {
            self.append(bytes);
        }
        Ok(self.can_continue(needed, stream, http2))
    }

    /// Like [`receive`](Inbox::receive), for the last bytes of a stream.
    #[inline]
    pub(crate) fn receive_last(
        &mut self,
        bytes: &[u8],
        stream: StreamId,
        http2: &mut http2::Connection,
    ) -> Result<(), EnvelopeError> {
        // The usual response: one message, and no window to release.
        if self.bytes.is_empty()
            && self.unit == ReadUnit::Messages
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

    /// Appends received bytes while large messages are gathered, each in a buffer of its own. Returns the length that
    /// the inbox needs.
    fn gather(&mut self, mut bytes: &[u8], mut needed: usize) -> Result<usize, EnvelopeError> {
        loop {
            if needed < OWN_BUFFER_LEN_MIN || self.bytes.len() > needed {
                self.append(bytes);
                return Ok(needed);
            }
            let (part, behind) = bytes.split_at(bytes.len().min(needed - self.bytes.len()));
            self.append(part);
            if behind.is_empty() {
                return Ok(needed);
            }
            let complete = CompleteMessage {
                bytes: std::mem::take(&mut self.bytes),
                unreleased: std::mem::take(&mut self.unreleased),
            };
            self.complete.get_or_insert_default().push_back(complete);
            self.last_len = short(needed);
            bytes = behind;
            needed = self.find_needed(bytes)?;
        }
    }

    /// Reserves space for `len` bytes, and for `behind` temporary ones. The buffer doubles like a vector, but not
    /// beyond its first message: a message of 4 MiB takes 4 MiB, not 8. Merely declared lengths allocate nothing, but
    /// may use a pooled buffer.
    fn reserve(&mut self, len: usize, behind: usize) {
        let filled = self.bytes.len() + len;
        if self.bytes.capacity() - self.bytes.len() >= len + behind {
            return;
        }
        match self.needed() {
            Some(needed) if filled <= needed => {
                if let Some(mut buffer) = buffers::take(needed + READ_AHEAD_LEN) {
                    buffer.extend_from_slice(&self.bytes);
                    self.bytes = buffer;
                } else {
                    let behind = if needed < OWN_BUFFER_LEN_MIN { behind } else { READ_AHEAD_LEN };
                    self.bytes.reserve_exact((2 * filled).min(needed) + behind - self.bytes.len());
                }
            }
            _ => self.bytes.reserve(len + behind),
        }
    }

    /// Returns the length that the inbox needs once `bytes` are appended, according to the first prefix.
    fn find_needed(&mut self, bytes: &[u8]) -> Result<usize, EnvelopeError> {
        if self.unit == ReadUnit::Bytes {
            self.needed = NonZeroUsize::new(1);
            return Ok(1);
        }
        let prefix = if self.bytes.is_empty() {
            Prefix::parse(bytes, self.message_size_max)
        } else if self.bytes.len() >= PREFIX_LEN {
            Prefix::parse(&self.bytes, self.message_size_max)
        } else {
            let mut front = [0; PREFIX_LEN];
            let (stored, rest) = front.split_at_mut(self.bytes.len());
            stored.copy_from_slice(&self.bytes);
            let copied_len = rest.len().min(bytes.len());
            rest[..copied_len].copy_from_slice(&bytes[..copied_len]);
            let len = stored.len() + copied_len;
            Prefix::parse(&front[..len], self.message_size_max)
        };
        let needed = match prefix {
            Ok(prefix) => prefix.map_or(PREFIX_LEN, Prefix::envelope_len),
            Err(_) if self.unit == ReadUnit::MessagesOrBytes => PREFIX_LEN,
            Err(error) => return Err(error),
        };
        self.needed = NonZeroUsize::new(needed);
        Ok(needed)
    }

    /// Returns whether the reader can continue. If not, requests window for the missing bytes.
    fn can_continue(&mut self, needed: usize, stream: StreamId, http2: &mut http2::Connection) -> bool {
        let is_available = self.has_complete() || self.bytes.len() >= needed;
        if !is_available {
            self.requires_bytes = true;
            http2.require_bytes(stream, needed - self.bytes.len());
        } else if self.requires_bytes {
            self.requires_bytes = false;
            http2.clear_required_bytes(stream);
        }
        is_available
    }

    /// Returns whether [`take`](Inbox::take) returns a complete large message.
    pub(super) fn has_complete(&self) -> bool {
        self.complete.as_ref().is_some_and(|complete| !complete.is_empty())
    }

    /// Lends the inbox to the driver, which knows that the next `len` bytes belong to this stream, if a large message
    /// is being gathered. Beyond one frame, capacity and `len_max` grow with the bytes that have arrived. They must
    /// not depend on the buffer that happens to be used.
    pub(super) fn lend(&mut self, len: usize) -> Option<LentInbox> {
        let missing = self.needed()?.checked_sub(self.bytes.len())?;
        let arrived = self.bytes.len().max(self.last_len as usize).max(DIRECT_READ_UNARRIVED_MAX);
        let len_max = len.min(missing).min(arrived);
        if len_max < DIRECT_READ_LEN_MIN || self.is_discarded || self.is_lent {
            return None;
        }
        self.reserve(len_max, READ_AHEAD_LEN);
        self.is_lent = true;
        Some(LentInbox { bytes: std::mem::take(&mut self.bytes), len_max })
    }

    /// Returns the inbox from the driver, with `len` more bytes. [`receive`](Inbox::receive) must follow.
    pub(super) fn return_lent(
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

    /// Swaps the oldest complete large message, or the inbox, into `buffer`, which must be empty, and releases its
    /// window.
    pub(super) fn take(&mut self, buffer: &mut Vec<u8>, stream: StreamId, http2: &mut http2::Connection) {
        debug_assert!(buffer.is_empty());
        if let Some(CompleteMessage { bytes, unreleased }) =
            self.complete.as_mut().and_then(|complete| complete.pop_front())
        {
            *buffer = bytes;
            if unreleased > 0 {
                http2.release(stream, unreleased);
            }
            return;
        }
        // The reader consumes a single message completely: the next data starts with a prefix.
        if self.needed() == Some(self.bytes.len()) {
            self.last_len = short(self.bytes.len());
            self.needed = NonZeroUsize::new(PREFIX_LEN);
        } else {
            self.needed = None;
        }
        std::mem::swap(&mut self.bytes, buffer);
        self.release(stream, http2);
    }

    /// Puts the reader's incomplete message, or nothing, in front of the data that has arrived since. Returns whether
    /// the reader can continue.
    pub(super) fn put_back(
        &mut self,
        tail: Vec<u8>,
        stream: StreamId,
        http2: &mut http2::Connection,
    ) -> Result<bool, EnvelopeError> {
        self.has_reader = true;
        if self.is_lent {
            // A message is being gathered, and the reader has no part of it.
            debug_assert!(tail.is_empty());
            return Ok(self.has_complete());
        }
        if !tail.is_empty() {
            let (newer_len, capacity) = (self.bytes.len(), self.bytes.capacity());
            if capacity > tail.capacity() && capacity - newer_len >= tail.len() {
                // The inbox has the larger buffer.
                self.bytes.extend_from_slice(&tail);
                self.bytes.rotate_right(tail.len());
            } else {
                let newer = std::mem::replace(&mut self.bytes, tail);
                self.bytes.extend_from_slice(&newer);
            }
        }
        let needed = self.find_needed(&[])?;
        Ok(self.can_continue(needed, stream, http2))
    }

    /// Like [`put_back`](Inbox::put_back), and changes the unit that the reader waits for.
    pub(super) fn put_back_for(
        &mut self,
        unit: ReadUnit,
        tail: Vec<u8>,
        stream: StreamId,
        http2: &mut http2::Connection,
    ) -> Result<bool, EnvelopeError> {
        self.unit = unit;
        self.put_back(tail, stream, http2)
    }

    /// Releases the window of the received bytes.
    pub(crate) fn release(&mut self, stream: StreamId, http2: &mut http2::Connection) {
        if self.unreleased > 0 {
            http2.release(stream, self.unreleased);
            self.unreleased = 0;
        }
    }

    /// Drops the data and everything that arrives later: there is no reader any more.
    pub(crate) fn discard(&mut self, stream: StreamId, http2: &mut http2::Connection) {
        self.is_discarded = true;
        self.bytes = Vec::new();
        let complete = self.complete.take().into_iter().flat_map(|complete| *complete);
        self.unreleased += complete.map(|complete| complete.unreleased).sum::<usize>();
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

    /// A reader that splits the data into whole messages, like `Incoming`.
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

    /// Passes `wire` to an inbox in pieces of random length, some through the lent inbox, with a reader that comes and
    /// goes at random.
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
            if let Some(LentInbox { mut bytes, len_max }) = inbox.lend(piece) {
                assert!(len_max <= piece);
                let len = random.below(len_max + 1);
                bytes.extend_from_slice(&rest[..len]);
                if random.below(2) == 0 {
                    reader.read(&mut inbox, &mut http2);
                }
                inbox.return_lent(bytes, len, STREAM, &mut http2);
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
    fn messages_are_intact_for_any_split_and_read() {
        for seed in 0..100 {
            check(seed, &[100_000, 0, 5, 70_000, 70_000, 70_000, 1, 32_763, 32_762, 200_000, 3]);
        }
    }

    #[test]
    fn declared_length_allocates_nothing() {
        let mut http2 = http2::Connection::server(http2::Config::default(), Instant::now());
        let mut inbox = Inbox::new(usize::MAX);
        inbox.receive(&envelope::prefix(false, 1 << 30).unwrap(), STREAM, &mut http2).unwrap();
        let LentInbox { bytes, len_max } = inbox.lend(1 << 20).unwrap();
        assert_eq!(len_max, DIRECT_READ_UNARRIVED_MAX);
        assert!(bytes.capacity() <= 256 << 10, "{} bytes", bytes.capacity());
        inbox.return_lent(bytes, 0, STREAM, &mut http2);
    }

    /// Returns the size of each read into the lent inbox, for a message in frames of `frame_len` bytes.
    fn lent(message_len: usize, frame_len: usize) -> Vec<usize> {
        let mut http2 = http2::Connection::server(http2::Config::default(), Instant::now());
        let mut inbox = Inbox::new(usize::MAX);
        let wire = [&envelope::prefix(false, message_len).unwrap()[..], &vec![0; message_len]].concat();
        let mut lens = Vec::new();
        for frame in wire.chunks(frame_len) {
            // The first bytes arrive with the previous read.
            let (front, mut rest) = frame.split_at(frame.len().min(READ_AHEAD_LEN));
            inbox.receive(front, STREAM, &mut http2).unwrap();
            while let Some(LentInbox { mut bytes, len_max }) = inbox.lend(rest.len()) {
                lens.push(len_max);
                bytes.extend_from_slice(&rest[..len_max]);
                rest = &rest[len_max..];
                inbox.return_lent(bytes, len_max, STREAM, &mut http2);
            }
            inbox.receive(rest, STREAM, &mut http2).unwrap();
        }
        assert_eq!(inbox.bytes.len(), wire.len());
        lens
    }

    #[test]
    fn frame_of_new_stream_is_read_at_once() {
        const REST: usize = (64 << 10) - READ_AHEAD_LEN;
        // All but the prefix of the next message is read at once.
        assert_eq!(lent(64 << 10, 64 << 10), [REST]);
        assert_eq!(lent(256 << 10, 64 << 10), [REST; 4]);
        // Reads of a larger frame grow with the bytes that have arrived.
        let large = 1 << 20;
        assert_eq!(lent(large, large), [64 << 10, 68 << 10, 136 << 10, 272 << 10, 480 << 10]);
    }

    #[test]
    fn returned_inbox_of_unread_stream_is_dropped() {
        let mut http2 = http2::Connection::server(http2::Config::default(), Instant::now());
        let mut inbox = Inbox::new(usize::MAX);
        inbox.receive(&envelope::prefix(false, 100_000).unwrap(), STREAM, &mut http2).unwrap();
        let LentInbox { mut bytes, .. } = inbox.lend(100_000).unwrap();
        assert!(inbox.lend(100_000).is_none(), "lent twice");
        inbox.discard(STREAM, &mut http2);
        bytes.extend_from_slice(&[0; 1000]);
        inbox.return_lent(bytes, 1000, STREAM, &mut http2);
        assert!(inbox.is_empty() && inbox.unreleased == 0);
        assert!(inbox.lend(100_000).is_none());
    }
}
