//! Bytes on their way to the socket.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;

/// Payloads of at least this many bytes are chained, smaller ones are copied: below it, copying costs less
/// than one more slice in a vectored write.
const CHAINED_BYTES_MIN: usize = 4096;

/// Bytes to write: contiguous where small, chained where large.
#[derive(Debug, Default)]
pub struct Output {
    /// Frame heads, control frames and small payloads, in order.
    buffer: Vec<u8>,
    /// How much of `buffer` is written.
    written: usize,
    /// Mostly there is nothing of the kind, and a connection has two outputs. Once there was, it stays for the next.
    apart: Option<Box<Apart>>,
}

/// What does not lie in the buffer.
#[derive(Debug, Default)]
struct Apart {
    /// Large payloads, each with its place: it goes out when so much of the buffer is written.
    chained: VecDeque<Chained>,
    /// Bytes in `chained`.
    len: usize,
    /// Parts that nobody needs any more: copied, or of streams that are gone. What is run when they are dropped may be
    /// anybody's code, so whoever writes the output drops them, and not the connection.
    discarded: Vec<Bytes>,
}

#[derive(Debug)]
struct Chained {
    at: usize,
    bytes: Bytes,
}

impl Output {
    /// Whether there is nothing to write.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes there are to write.
    #[inline]
    pub fn len(&self) -> usize {
        self.buffer.len() - self.written + self.apart.as_ref().map_or(0, |apart| apart.len)
    }

    /// All that is to be written, if it lies in one piece.
    #[inline]
    pub fn as_contiguous(&self) -> Option<&[u8]> {
        let is_whole = self.apart.as_ref().is_none_or(|apart| apart.chained.is_empty());
        is_whole.then(|| &self.buffer[self.written..])
    }

    /// Fills `slices` with what is to be written first, in order; returns how many slices were set. For a
    /// vectored write.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut set = 0;
        let mut at = self.written;
        let mut chained = self.apart.iter().flat_map(|apart| &apart.chained);
        while set < slices.len() {
            let next = chained.next();
            let end = next.map_or(self.buffer.len(), |next| next.at);
            if at < end {
                slices[set] = IoSlice::new(&self.buffer[at..end]);
                set += 1;
                at = end;
            }
            let Some(next) = next else { break };
            if set == slices.len() {
                break;
            }
            slices[set] = IoSlice::new(&next.bytes);
            set += 1;
        }
        set
    }

    /// Forgets the first `n` bytes: they are written. At most [`Output::len`].
    #[inline]
    pub fn advance(&mut self, n: usize) {
        debug_assert!(n <= self.len(), "more was written than there was");
        let n = self.advance_apart(n);
        self.written += n.min(self.buffer.len() - self.written);
        if self.is_empty() {
            self.buffer.clear();
            self.written = 0;
            self.drop_discarded();
        }
    }

    /// Forgets the first `n` bytes up to the end of the last payload that is chained. Returns how many are left of `n`.
    #[inline]
    fn advance_apart(&mut self, mut n: usize) -> usize {
        let Some(apart) = &mut self.apart else { return n };
        while let Some(first) = apart.chained.front_mut() {
            let before = (first.at - self.written).min(n);
            self.written += before;
            n -= before;
            if self.written < first.at || n == 0 {
                break;
            }
            let part = first.bytes.len().min(n);
            apart.len -= part;
            n -= part;
            if part < first.bytes.len() {
                bytes::Buf::advance(&mut first.bytes, part);
                break;
            }
            apart.chained.pop_front();
        }
        n
    }

    /// Drops what came with the output and is not to be written. To be called where nothing was to be written; else
    /// [`advance`](Output::advance) sees to it.
    #[inline]
    pub fn drop_discarded(&mut self) {
        if let Some(apart) = &mut self.apart
            && !apart.discarded.is_empty()
        {
            apart.discarded.clear();
        }
    }

    /// Copies what is left to write, so that it keeps no memory of what it was a part of, and drops what is not to be
    /// written: for output that may never be read.
    pub fn detach(&mut self) {
        if self.apart.is_some() {
            let mut buffer = Vec::new();
            self.copy_to(&mut buffer);
            *self = Self { buffer, written: 0, apart: None };
        }
    }

    /// Appends all there is to write to `target`.
    pub fn copy_to(&self, target: &mut Vec<u8>) {
        target.reserve(self.len());
        let mut at = self.written;
        for chained in self.apart.iter().flat_map(|apart| &apart.chained) {
            target.extend_from_slice(&self.buffer[at..chained.at]);
            target.extend_from_slice(&chained.bytes);
            at = chained.at;
        }
        target.extend_from_slice(&self.buffer[at..]);
    }

    /// Takes `buffer`'s memory, which must be empty, for what is to be written, if it has none itself.
    #[inline]
    pub fn lend(&mut self, buffer: &mut Vec<u8>) {
        debug_assert!(buffer.is_empty(), "only memory is lent");
        if self.buffer.capacity() == 0 {
            std::mem::swap(&mut self.buffer, buffer);
        }
    }

    /// Gives its memory away where nothing is to be written: empty.
    #[inline]
    pub fn give_back(&mut self) -> Vec<u8> {
        if self.is_empty() { std::mem::take(&mut self.buffer) } else { Vec::new() }
    }

    /// Gives buffers back where nothing is to be written.
    pub fn shrink(&mut self) {
        if self.is_empty() && self.apart.as_ref().is_none_or(|apart| apart.discarded.is_empty()) {
            *self = Output::default();
        }
    }

    /// Where frames are built: what is appended goes out behind all that is there.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Keeps a part that is not to be written for whoever drops it.
    pub(crate) fn discard(&mut self, bytes: Bytes) {
        self.apart.get_or_insert_default().discarded.push(bytes);
    }

    /// What is to be dropped goes to `other`.
    #[inline]
    pub(crate) fn give_discarded(&mut self, other: &mut Output) {
        if let Some(apart) = &mut self.apart
            && !apart.discarded.is_empty()
        {
            other.apart.get_or_insert_default().discarded.append(&mut apart.discarded);
        }
    }

    /// `first` goes out before all that is there, of which nothing may have been written.
    pub(crate) fn prepend(&mut self, first: &[u8]) {
        debug_assert_eq!(self.written, 0, "what has been written was first");
        self.buffer.splice(0..0, first.iter().copied());
        for chained in self.apart.iter_mut().flat_map(|apart| &mut apart.chained) {
            chained.at += first.len();
        }
    }

    /// Appends a payload: chained where it is large, copied where it is small.
    pub(crate) fn push_payload(&mut self, bytes: Bytes) {
        if bytes.len() < CHAINED_BYTES_MIN {
            self.buffer.extend_from_slice(&bytes);
            self.discard(bytes);
        } else {
            let apart = self.apart.get_or_insert_default();
            apart.len += bytes.len();
            apart.chained.push_back(Chained { at: self.buffer.len(), bytes });
        }
    }
}
