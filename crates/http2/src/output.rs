//! Bytes to be written to the socket.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;

/// Payloads of at least this many bytes are chained, smaller ones copied, because copying these costs less than one
/// more slice in a vectored write.
const CHAINED_BYTES_MIN: usize = 4096;

/// Bytes to write: small ones contiguous, large ones chained.
#[derive(Debug, Default)]
pub struct Output {
    /// Frame headers, control frames and small payloads, in order.
    buffer: Vec<u8>,
    /// Number of bytes of `buffer` already written.
    written: usize,
    /// Allocated on first use and then kept: it is rarely needed, and a connection has two outputs.
    chained_parts: Option<Box<ChainedParts>>,
}

/// Data outside of the buffer.
#[derive(Debug, Default)]
struct ChainedParts {
    /// Large payloads, each with the number of bytes of the buffer that precede it.
    parts: VecDeque<ChainedPart>,
    /// Bytes in `parts`.
    len: usize,
    /// Parts no longer needed: copied, or of streams that are gone. Dropping them may run arbitrary code, so the writer
    /// of the output does it, not the connection.
    discarded: Vec<Bytes>,
}

#[derive(Debug)]
struct ChainedPart {
    at: usize,
    bytes: Bytes,
}

impl Output {
    /// Returns whether there is nothing to write.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes to write.
    #[inline]
    pub fn len(&self) -> usize {
        self.buffer.len() - self.written + self.chained_parts.as_ref().map_or(0, |chained| chained.len)
    }

    /// Returns all bytes to write, if they are contiguous.
    #[inline]
    pub fn as_contiguous(&self) -> Option<&[u8]> {
        let is_contiguous = self.chained_parts.as_ref().is_none_or(|chained| chained.parts.is_empty());
        is_contiguous.then(|| &self.buffer[self.written..])
    }

    /// Fills `slices` with the next bytes to write, in order, for a vectored write. Returns the number of slices set.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut set = 0;
        let mut at = self.written;
        let mut parts = self.chained_parts.iter().flat_map(|chained| &chained.parts);
        while set < slices.len() {
            let next = parts.next();
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

    /// Removes the first `n` bytes, at most [`Output::len`], after they were written.
    #[inline]
    pub fn advance(&mut self, n: usize) {
        debug_assert!(n <= self.len(), "more bytes written than available");
        let n = self.advance_chained(n);
        self.written += n.min(self.buffer.len() - self.written);
        if self.is_empty() {
            self.buffer.clear();
            self.written = 0;
            self.drop_discarded();
        }
    }

    /// Removes the first `n` bytes up to the end of the last chained payload. Returns the remainder of `n`.
    #[inline]
    fn advance_chained(&mut self, mut n: usize) -> usize {
        let Some(chained) = &mut self.chained_parts else { return n };
        while let Some(first) = chained.parts.front_mut() {
            let before = (first.at - self.written).min(n);
            self.written += before;
            n -= before;
            if self.written < first.at || n == 0 {
                break;
            }
            let part = first.bytes.len().min(n);
            chained.len -= part;
            n -= part;
            if part < first.bytes.len() {
                bytes::Buf::advance(&mut first.bytes, part);
                break;
            }
            chained.parts.pop_front();
        }
        n
    }

    /// Drops discarded parts. Call it if there was nothing to write; otherwise [`advance`](Output::advance) does it.
    #[inline]
    pub fn drop_discarded(&mut self) {
        if let Some(chained) = &mut self.chained_parts
            && !chained.discarded.is_empty()
        {
            chained.discarded.clear();
        }
    }

    /// Copies the unwritten bytes, so that they keep no other memory alive, and drops discarded parts. For output that
    /// may never be read.
    pub fn detach(&mut self) {
        if self.chained_parts.is_some() {
            let mut buffer = Vec::new();
            self.copy_to(&mut buffer);
            *self = Self { buffer, written: 0, chained_parts: None };
        }
    }

    /// Appends all bytes to write to `target`.
    pub fn copy_to(&self, target: &mut Vec<u8>) {
        target.reserve(self.len());
        let mut at = self.written;
        for part in self.chained_parts.iter().flat_map(|chained| &chained.parts) {
            target.extend_from_slice(&self.buffer[at..part.at]);
            target.extend_from_slice(&part.bytes);
            at = part.at;
        }
        target.extend_from_slice(&self.buffer[at..]);
    }

    /// Takes over the memory of `buffer`, which must be empty, if it has none itself.
    #[inline]
    pub fn adopt_buffer(&mut self, buffer: &mut Vec<u8>) {
        debug_assert!(buffer.is_empty(), "only an empty buffer can be adopted");
        if self.buffer.capacity() == 0 {
            std::mem::swap(&mut self.buffer, buffer);
        }
    }

    /// Returns its memory, if there is nothing to write.
    #[inline]
    pub fn release_buffer(&mut self) -> Vec<u8> {
        if self.is_empty() { std::mem::take(&mut self.buffer) } else { Vec::new() }
    }

    /// Frees memory, if there is nothing to write.
    pub fn shrink(&mut self) {
        if self.is_empty() && self.chained_parts.as_ref().is_none_or(|chained| chained.discarded.is_empty()) {
            *self = Output::default();
        }
    }

    /// Returns the buffer for building frames; appended bytes follow everything already there.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Keeps a part that is not to be written, for the writer to drop.
    pub(crate) fn discard(&mut self, bytes: Bytes) {
        self.chained_parts.get_or_insert_default().discarded.push(bytes);
    }

    /// Moves the discarded parts to `other`.
    #[inline]
    pub(crate) fn move_discarded_to(&mut self, other: &mut Output) {
        if let Some(chained) = &mut self.chained_parts
            && !chained.discarded.is_empty()
        {
            other.chained_parts.get_or_insert_default().discarded.append(&mut chained.discarded);
        }
    }

    /// Inserts `first` before everything else; nothing may have been written yet.
    pub(crate) fn prepend(&mut self, first: &[u8]) {
        debug_assert_eq!(self.written, 0, "some output was already written");
        self.buffer.splice(0..0, first.iter().copied());
        for part in self.chained_parts.iter_mut().flat_map(|chained| &mut chained.parts) {
            part.at += first.len();
        }
    }

    /// Appends a payload: chained if large, copied if small.
    pub(crate) fn push_payload(&mut self, bytes: Bytes) {
        if bytes.len() < CHAINED_BYTES_MIN {
            self.buffer.extend_from_slice(&bytes);
            self.discard(bytes);
        } else {
            let chained = self.chained_parts.get_or_insert_default();
            chained.len += bytes.len();
            chained.parts.push_back(ChainedPart { at: self.buffer.len(), bytes });
        }
    }
}
