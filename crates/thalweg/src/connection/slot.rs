//! What a connection keeps for one stream: its half-read messages, how it ended, and who waits.

use std::sync::Arc;
use std::task::Waker;

use thalweg_http2::{self as http2, StreamId};
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::grpc::envelope::{EnvelopeError, PREFIX_LEN, Prefix};
use crate::grpc::response::ResponseHead;

/// Names a slot; stale once the slot is removed, even when its index is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotKey {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl SlotKey {
    /// Small, and used again after the slot was removed.
    pub(crate) fn index(self) -> usize {
        self.index as usize
    }
}

/// One stream, seen from the gRPC side.
///
/// # Receiving
/// DATA is appended to `inbox` as it comes. The reader takes the whole inbox at once and cuts messages out of it
/// outside the lock. `needed` is how long the inbox must be before the reader can go on: it is woken then, and not
/// before, so a large message is gathered once and wakes its reader once.
///
/// The stream's receive window is given back when the reader takes the inbox. While the inbox is shorter than
/// `needed` it is given back at once: a message larger than the window could never arrive otherwise. So a slot
/// holds at most one window, or one message of at most the permitted size; its reader may hold as much again, taken before.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each asked for by itself")]
pub(crate) struct Slot {
    pub(super) generation: u32,
    pub(crate) stream: StreamId,
    pub(crate) inbox: Vec<u8>,
    /// Bytes in `inbox` that the peer has not been given back yet.
    unreleased: usize,
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
            inbox: Vec::new(),
            unreleased: 0,
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
        self.append(bytes);
        self.unreleased += bytes.len();
        match self.needed {
            None => Ok(false),
            Some(PREFIX_LEN) => self.measure(http2),
            Some(needed) => Ok(self.has(needed, http2)),
        }
    }

    /// Grows the inbox as a vector grows, by doubling, but not beyond the message that it begins with: one of 4 MiB takes
    /// 4 MiB and not 8. What is merely declared takes nothing.
    fn append(&mut self, bytes: &[u8]) {
        let len = self.inbox.len() + bytes.len();
        if let Some(needed) = self.needed
            && (self.inbox.capacity() + 1..=needed).contains(&len)
        {
            self.inbox.reserve_exact((2 * len).min(needed) - self.inbox.len());
        }
        self.inbox.extend_from_slice(bytes);
    }

    /// Reads how long the inbox must be from the prefix at its front. Returns whether it is.
    fn measure(&mut self, http2: &mut http2::Connection) -> Result<bool, EnvelopeError> {
        let prefix = Prefix::parse(&self.inbox, self.message_size_max)?;
        let needed = prefix.map_or(PREFIX_LEN, Prefix::envelope_len);
        self.needed = Some(needed);
        Ok(self.has(needed, http2))
    }

    fn has(&mut self, needed: usize, http2: &mut http2::Connection) -> bool {
        let is_there = self.inbox.len() >= needed;
        if !is_there {
            self.release(http2);
        }
        is_there
    }

    /// Exchanges the inbox for `buffer`, which must be empty, and gives its window back.
    pub(crate) fn take_inbox(&mut self, buffer: &mut Vec<u8>, http2: &mut http2::Connection) {
        debug_assert!(buffer.is_empty());
        std::mem::swap(&mut self.inbox, buffer);
        self.needed = None;
        self.release(http2);
    }

    /// The reader comes back with the beginning of a message, or with nothing: it goes in front of what has arrived
    /// since, to wait for the rest. Returns whether that is there already.
    pub(crate) fn put_back(
        &mut self,
        tail: Vec<u8>,
        http2: &mut http2::Connection,
    ) -> Result<bool, EnvelopeError> {
        if !tail.is_empty() {
            let since = std::mem::replace(&mut self.inbox, tail);
            self.inbox.extend_from_slice(&since);
        }
        self.measure(http2)
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
