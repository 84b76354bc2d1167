//! Send queues of the streams.
//!
//! The queues of all streams are linked lists in one slab. So queueing does not allocate once the connection has warmed
//! up, and an empty queue takes three words.

use std::sync::Arc;

use bytes::Bytes;
use slab::Slab;

use crate::fields::{Block, FieldList, FixedFields};
use crate::output::Output;

const NIL: u32 = u32::MAX;

/// The queue of one stream; its items are in [`QueuedItems`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendQueue {
    first: u32,
    last: u32,
    /// Bytes of DATA in the queue.
    bytes: usize,
    /// Bytes of DATA taken from the queue so far, modulo 2³².
    taken: u32,
    /// The queue was above the low-water mark, and the driver has not been notified that it is below.
    is_high: bool,
}

impl SendQueue {
    pub(crate) const EMPTY: SendQueue =
        SendQueue { first: NIL, last: NIL, bytes: 0, taken: 0, is_high: false };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NIL
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes of DATA taken from the queue so far, modulo 2³².
    pub(crate) fn taken(&self) -> u32 {
        self.taken
    }

    /// Updates the mark after the driver has added to the queue.
    pub(crate) fn note_growth(&mut self, low_water: usize) {
        self.is_high |= self.bytes >= low_water;
    }

    /// Returns whether framing has brought the queue below the low-water mark, having been above.
    pub(crate) fn became_low(&mut self, low_water: usize) -> bool {
        let became_low = self.is_high && self.bytes < low_water;
        self.is_high &= !became_low;
        became_low
    }
}

/// An item to send on a stream. END_STREAM is not an item: it is set on the last one once the driver has ended the
/// stream.
#[derive(Debug)]
pub(crate) enum Queued {
    Data(Bytes),
    /// Encoded when framed, because HPACK blocks must be decoded in the order in which they were encoded.
    Headers(Box<QueuedBlock>),
}

/// An owned [`Block`].
#[derive(Debug)]
pub(crate) struct QueuedBlock {
    fixed: Option<Arc<FixedFields>>,
    extra: FieldList,
}

impl QueuedBlock {
    pub(crate) fn new(block: Block<'_>) -> QueuedBlock {
        QueuedBlock { fixed: block.fixed.cloned(), extra: block.extra.clone() }
    }

    pub(crate) fn as_block(&self) -> Block<'_> {
        Block { fixed: self.fixed.as_ref(), extra: &self.extra }
    }
}

#[derive(Debug)]
struct Node {
    item: Queued,
    next: u32,
    /// Length of the DATA when it was queued. Its memory is freed when its last byte is gone.
    len: usize,
}

/// The items of all queues of a connection.
#[derive(Debug, Default)]
pub(crate) struct QueuedItems {
    nodes: Slab<Node>,
    /// Bytes of DATA in all queues.
    bytes: usize,
    /// Memory of the queued DATA in bytes: a part counts in full until its last byte is taken.
    memory: usize,
    /// Memory in bytes of parts sent in several pieces whose last piece is framed and not yet written.
    framed_memory: usize,
    /// Bytes of DATA taken from all queues so far.
    taken: u64,
}

impl QueuedItems {
    pub(crate) fn push(&mut self, queue: &mut SendQueue, item: Queued) {
        let mut len = 0;
        if let Queued::Data(bytes) = &item {
            len = bytes.len();
            queue.bytes += len;
            self.bytes += len;
            self.memory += len;
        }
        let node = self.nodes.insert(Node { item, next: NIL, len }) as u32;
        match self.nodes.get_mut(queue.last as usize) {
            Some(last) if queue.first != NIL => last.next = node,
            _ => queue.first = node,
        }
        queue.last = node;
    }

    /// Returns the bytes of DATA in all queues.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the memory of the DATA in all queues, in bytes.
    #[inline]
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Returns the memory that framed pieces keep alive beyond themselves, in bytes, and resets it.
    #[inline]
    pub(crate) fn take_framed_memory(&mut self) -> usize {
        std::mem::take(&mut self.framed_memory)
    }

    /// Returns the same for pieces not yet taken for writing.
    pub(crate) fn framed_memory(&self) -> usize {
        self.framed_memory
    }

    /// Returns the bytes of DATA taken from all queues so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    pub(crate) fn front(&self, queue: &SendQueue) -> Option<&Queued> {
        self.nodes.get(queue.first as usize).map(|node| &node.item)
    }

    /// Takes the headers at the front.
    pub(crate) fn pop_headers(&mut self, queue: &mut SendQueue) -> Option<Box<QueuedBlock>> {
        if !matches!(self.front(queue), Some(Queued::Headers(_))) {
            return None;
        }
        match self.pop(queue) {
            Queued::Headers(block) => Some(block),
            Queued::Data(_) => None,
        }
    }

    /// Takes at most `len` bytes of the DATA at the front.
    pub(crate) fn pop_data(&mut self, queue: &mut SendQueue, len: usize) -> Option<Bytes> {
        let Some(Node { item: Queued::Data(bytes), .. }) = self.nodes.get_mut(queue.first as usize) else {
            return None;
        };
        let taken = bytes.len().min(len);
        let is_last_piece = bytes.len() <= len;
        queue.bytes -= taken;
        queue.taken = queue.taken.wrapping_add(taken as u32);
        self.bytes -= taken;
        self.taken += taken as u64;
        if !is_last_piece {
            return Some(bytes.split_to(len));
        }
        if let Some(node) = self.nodes.get(queue.first as usize)
            && node.len > taken
        {
            self.framed_memory += node.len;
        }
        match self.pop(queue) {
            Queued::Data(bytes) => Some(bytes),
            Queued::Headers(_) => None,
        }
    }

    fn pop(&mut self, queue: &mut SendQueue) -> Queued {
        let node = self.nodes.remove(queue.first as usize);
        queue.first = node.next;
        self.memory -= node.len;
        node.item
    }

    /// Discards everything that a removed stream has queued; the writer of the output drops it.
    #[cold]
    pub(crate) fn drop_all(&mut self, queue: &mut SendQueue, output: &mut Output) {
        while !queue.is_empty() {
            if let Queued::Data(bytes) = self.pop(queue) {
                self.bytes -= bytes.len();
                output.discard(bytes);
            }
        }
        queue.bytes = 0;
    }

    /// Does the same for all streams.
    pub(crate) fn clear(&mut self, output: &mut Output) {
        (self.bytes, self.memory) = (0, 0);
        for node in std::mem::take(&mut self.nodes) {
            if let Queued::Data(bytes) = node.1.item {
                output.discard(bytes);
            }
        }
    }

    /// Frees memory if nothing is queued.
    pub(crate) fn shrink(&mut self) {
        if self.nodes.is_empty() {
            self.nodes = Slab::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_split_and_stays_in_order_with_headers() {
        let mut queues = QueuedItems::default();
        let mut queue = SendQueue::EMPTY;
        let trailers = FieldList::new();
        queues.push(&mut queue, Queued::Data(Bytes::from_static(b"abcde")));
        queues.push(
            &mut queue,
            Queued::Headers(Box::new(QueuedBlock::new(Block { fixed: None, extra: &trailers }))),
        );
        assert_eq!(queue.bytes(), 5);
        assert_eq!(queues.pop_data(&mut queue, 3).as_deref(), Some(&b"abc"[..]));
        assert_eq!((queue.bytes(), queue.taken(), queues.taken()), (2, 3, 3));
        assert_eq!((queues.bytes(), queues.memory()), (2, 5), "the rest keeps the whole allocation");
        assert!(queues.pop_headers(&mut queue).is_none());
        assert_eq!(queues.pop_data(&mut queue, 3).as_deref(), Some(&b"de"[..]));
        assert_eq!(queues.pop_data(&mut queue, 3), None);
        assert!(queues.pop_headers(&mut queue).is_some());
        assert!(queue.is_empty());
        assert_eq!((queue.taken(), queues.memory()), (5, 0));
        assert!(queues.nodes.is_empty());
        queues.push(&mut queue, Queued::Data(Bytes::from_static(b"f")));
        assert_eq!(queues.pop_data(&mut queue, 1).as_deref(), Some(&b"f"[..]));
    }

    #[test]
    fn queues_of_two_streams_do_not_mix() {
        let mut queues = QueuedItems::default();
        let (mut a, mut b) = (SendQueue::EMPTY, SendQueue::EMPTY);
        for n in 0..10u8 {
            let queue = if n % 2 == 0 { &mut a } else { &mut b };
            queues.push(queue, Queued::Data(Bytes::copy_from_slice(&[n])));
        }
        let mut drain = |queue: &mut SendQueue| {
            std::iter::from_fn(|| queues.pop_data(queue, 9))
                .flat_map(|bytes| bytes.to_vec())
                .collect::<Vec<_>>()
        };
        assert_eq!(drain(&mut b), [1, 3, 5, 7, 9]);
        assert_eq!(drain(&mut a), [0, 2, 4, 6, 8]);
    }
}
