//! What a connection keeps for one stream: its half-read messages, how it ended, and who waits.

use std::sync::Arc;
use std::task::Waker;

use thalweg_http2::{self as http2, StreamId};
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::grpc::compression::Encoding;
use crate::grpc::envelope::{self, EnvelopeError};

/// Names a slot; stale once the slot is removed, even when its index is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotKey {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// One stream, seen from the gRPC side.
///
/// # Receiving
/// DATA is appended to `inbox` as it comes. The reader takes the whole inbox at once and cuts messages out of it
/// outside the lock. `needed` is how long the inbox must be before the reader can go on: it is woken then, and not
/// before, so a large message is gathered once and wakes its reader once.
///
/// The stream's receive window is given back when the reader takes the inbox. While the inbox is shorter than
/// `needed` it is given back at once: a message larger than the window could never arrive otherwise. So a stream
/// holds at most one window, or one message of at most the permitted size.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(super) generation: u32,
    pub(crate) stream: StreamId,
    pub(crate) inbox: Vec<u8>,
    /// Bytes in `inbox` that the peer has not been given back yet.
    unreleased: usize,
    needed: usize,
    message_size_max: usize,
    /// Nobody reads any more: what arrives is dropped, and its window given back.
    pub(crate) discard: bool,
    /// Client: the response's head.
    pub(crate) head: Option<Arc<Head>>,
    pub(crate) end: Option<End>,
    /// We have sent END_STREAM (or reset the stream): nothing more goes out.
    pub(crate) send_closed: bool,
    pub(crate) receiver: Option<Waker>,
    pub(crate) sender: Option<Waker>,
    /// Server: the task that runs the handler, to be told when the call is lost.
    pub(crate) task: Option<Waker>,
}

/// A received head, parsed: shared by all calls whose heads were the same.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) metadata: MetadataMap,
    pub(crate) encoding: Option<Encoding>,
}

/// How the peer's half of a stream ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// The peer sent all there is. On a client: with this status and these trailers (None: OK and no metadata).
    Complete(Option<Box<Trailers>>),
    /// The stream or the connection was lost. `unprocessed`: no application has seen the call.
    Lost { status: Status, unprocessed: bool },
}

/// The end of a response that is more than a plain OK.
#[derive(Clone, Debug)]
pub(crate) struct Trailers {
    /// None for OK.
    pub(crate) error: Option<Status>,
    pub(crate) metadata: MetadataMap,
}

impl Slot {
    pub(crate) fn new(stream: StreamId, message_size_max: usize) -> Self {
        Self {
            generation: 0,
            stream,
            inbox: Vec::new(),
            unreleased: 0,
            needed: envelope::PREFIX_LEN,
            message_size_max,
            discard: false,
            head: None,
            end: None,
            send_closed: false,
            receiver: None,
            sender: None,
            task: None,
        }
    }

    /// Appends what arrived. Returns whether the reader can go on.
    pub(crate) fn receive(&mut self, bytes: &[u8], http2: &mut http2::Connection) -> Result<bool, EnvelopeError> {
        if self.discard {
            http2.release(self.stream, bytes.len());
            return Ok(false);
        }
        self.inbox.extend_from_slice(bytes);
        self.unreleased += bytes.len();
        if self.needed == envelope::PREFIX_LEN
            && let Some(prefix) = envelope::parse_prefix(&self.inbox, self.message_size_max)?
        {
            self.needed = envelope::PREFIX_LEN + prefix.len;
        }
        if self.inbox.len() < self.needed {
            self.release(http2);
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether the inbox holds what its reader waits for.
    pub(crate) fn is_ready(&self) -> bool {
        self.inbox.len() >= self.needed
    }

    /// Exchanges the inbox for `buffer`, which must be empty, and gives its window back.
    pub(crate) fn take_inbox(&mut self, buffer: &mut Vec<u8>, http2: &mut http2::Connection) {
        debug_assert!(buffer.is_empty());
        std::mem::swap(&mut self.inbox, buffer);
        self.needed = envelope::PREFIX_LEN;
        self.release(http2);
    }

    /// Puts the beginning of a message back in front of what has arrived since, to wait for the rest of it.
    /// Returns whether that rest is there already.
    pub(crate) fn put_back(
        &mut self,
        mut tail: Vec<u8>,
        http2: &mut http2::Connection,
    ) -> Result<bool, EnvelopeError> {
        tail.append(&mut self.inbox);
        self.inbox = tail;
        self.needed = match envelope::parse_prefix(&self.inbox, self.message_size_max)? {
            Some(prefix) => envelope::PREFIX_LEN + prefix.len,
            None => envelope::PREFIX_LEN,
        };
        if self.inbox.len() < self.needed {
            self.release(http2);
            return Ok(false);
        }
        Ok(true)
    }

    fn release(&mut self, http2: &mut http2::Connection) {
        if self.unreleased > 0 {
            http2.release(self.stream, self.unreleased);
            self.unreleased = 0;
        }
    }

    /// Nobody reads any more: drops what is there and what will come.
    pub(crate) fn discard(&mut self, http2: &mut http2::Connection) {
        self.discard = true;
        self.inbox = Vec::new();
        self.release(http2);
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

    /// All who wait on this stream.
    pub(crate) fn take_wakers(&mut self) -> impl Iterator<Item = Waker> + use<> {
        [self.receiver.take(), self.sender.take(), self.task.take()].into_iter().flatten()
    }
}

/// Keeps `place` holding `waker`, cloning only when it changed.
pub(crate) fn keep_waker(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(old) if old.will_wake(waker) => {}
        _ => *place = Some(waker.clone()),
    }
}
