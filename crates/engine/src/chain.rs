//! Encoded bytes on their way out: copied where small, kept where large.

use bytes::buf::UninitSlice;
use bytes::{Buf, BufMut, Bytes};

/// A part of at least this many bytes is kept, a smaller one copied: below it, copying costs less than one more part.
const KEPT_LEN_MIN: usize = 4 * 1024;

/// Where a message is encoded to: a buffer, and between its bytes those that need not be copied.
///
/// It is a [`BufMut`]: a [`Bytes`] of some KiB that is [`put`](BufMut::put) into it is kept by its reference count.
/// prost writes `bytes` fields of the type [`Bytes`] that way, so a large one goes from the message to the socket
/// without a copy.
#[derive(Debug, Default)]
pub struct Chain {
    buffer: Vec<u8>,
    kept: Vec<Kept>,
    /// Bytes in `kept`.
    kept_len: usize,
}

#[derive(Debug)]
struct Kept {
    /// It stands before the buffer's byte of this index.
    at: usize,
    bytes: Bytes,
}

impl Chain {
    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len() + self.kept_len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where bytes are appended that are copied in any case.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Appends `bytes`: without a copy where they are many.
    pub fn push(&mut self, bytes: Bytes) {
        if bytes.len() < KEPT_LEN_MIN {
            self.buffer.extend_from_slice(&bytes);
        } else {
            self.kept_len += bytes.len();
            self.kept.push(Kept { at: self.buffer.len(), bytes });
        }
    }

    /// All of it, if it lies in one piece.
    pub(crate) fn as_contiguous(&self) -> Option<&[u8]> {
        self.kept.is_empty().then_some(&self.buffer)
    }

    /// Where the end is, to come back to.
    pub(crate) fn mark(&self) -> Mark {
        Mark { buffer_len: self.buffer.len(), kept_count: self.kept.len() }
    }

    /// Forgets what was appended since.
    pub(crate) fn truncate(&mut self, mark: Mark) {
        self.buffer.truncate(mark.buffer_len);
        self.kept_len -= self.kept.drain(mark.kept_count..).map(|kept| kept.bytes.len()).sum::<usize>();
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.truncate(Mark { buffer_len: 0, kept_count: 0 });
    }

    /// Appends all of it to `bytes`.
    pub(crate) fn copy_to(&self, bytes: &mut Vec<u8>) {
        let mut begin = 0;
        for kept in &self.kept {
            let at = kept.at.min(self.buffer.len());
            bytes.extend_from_slice(&self.buffer[begin..at]);
            bytes.extend_from_slice(&kept.bytes);
            begin = at;
        }
        bytes.extend_from_slice(&self.buffer[begin..]);
    }

    /// Takes all of it out, in parts: those that are kept, and what lies between them.
    pub fn take_parts(&mut self) -> Vec<Bytes> {
        let mut rest = if self.buffer.len() < KEPT_LEN_MIN {
            let copied = Bytes::copy_from_slice(&self.buffer);
            self.buffer.clear();
            copied
        } else {
            Bytes::from(std::mem::take(&mut self.buffer))
        };
        let mut parts = Vec::with_capacity(2 * self.kept.len() + 1);
        let mut begin = 0;
        for Kept { at, bytes } in self.kept.drain(..) {
            // A message that cuts the buffer, which is forbidden, must not panic here.
            let before = rest.split_to(at.saturating_sub(begin).min(rest.len()));
            begin += before.len();
            parts.extend((!before.is_empty()).then_some(before));
            parts.push(bytes);
        }
        parts.extend((!rest.is_empty()).then_some(rest));
        self.kept_len = 0;
        parts
    }
}

/// A position in a [`Chain`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) buffer_len: usize,
    kept_count: usize,
}

// SAFETY: what is written through `chunk_mut` and `advance_mut` goes to the buffer, a `Vec<u8>`, whose own
// implementation of the trait does the work and keeps its promises.
unsafe impl BufMut for Chain {
    fn remaining_mut(&self) -> usize {
        BufMut::remaining_mut(&self.buffer)
    }

    unsafe fn advance_mut(&mut self, count: usize) {
        // SAFETY: the caller promises of the same buffer what is asked for here.
        unsafe { self.buffer.advance_mut(count) }
    }

    fn chunk_mut(&mut self) -> &mut UninitSlice {
        self.buffer.chunk_mut()
    }

    fn put<T: Buf>(&mut self, mut src: T)
    where
        Self: Sized,
    {
        if src.remaining() < KEPT_LEN_MIN {
            self.buffer.put(src);
        } else {
            // Of `Bytes` this is a reference; of anything else a copy, which the buffer would have taken as well.
            let len = src.remaining();
            self.push(src.copy_to_bytes(len));
        }
    }

    fn put_slice(&mut self, src: &[u8]) {
        self.buffer.extend_from_slice(src);
    }

    fn put_bytes(&mut self, value: u8, count: usize) {
        self.buffer.put_bytes(value, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(parts: &[Bytes]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn large_bytes_are_kept_and_all_stands_in_order() {
        let large = Bytes::from(vec![7; KEPT_LEN_MIN]);
        let mut chain = Chain::default();
        chain.put_u8(1);
        chain.put(large.clone());
        chain.put(Bytes::from_static(b"small"));
        chain.put(&vec![8; KEPT_LEN_MIN][..]);
        chain.put(large.clone());
        assert_eq!(chain.len(), 6 + 3 * KEPT_LEN_MIN);
        assert_eq!(chain.as_contiguous(), None);
        let parts = chain.take_parts();
        assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [1, 4096, 5, 4096, 4096]);
        assert_eq!(parts[1].as_ptr(), large.as_ptr());
        assert_eq!(parts[4].as_ptr(), large.as_ptr());
        let expected = [b"\x01", &large[..], b"small", &[8; KEPT_LEN_MIN], &large].concat();
        assert_eq!(joined(&parts), expected);
        assert!(chain.is_empty() && chain.take_parts().is_empty());
    }

    #[test]
    fn what_is_forgotten_leaves_the_rest() {
        let mut chain = Chain::default();
        chain.put_slice(b"before");
        chain.put(Bytes::from(vec![1; KEPT_LEN_MIN]));
        let mark = chain.mark();
        chain.put_slice(b"behind");
        chain.put(Bytes::from(vec![2; KEPT_LEN_MIN]));
        chain.truncate(mark);
        assert_eq!(chain.len(), 6 + KEPT_LEN_MIN);
        chain.put_slice(b"!");
        assert_eq!(joined(&chain.take_parts()), [b"before", &[1; KEPT_LEN_MIN][..], b"!"].concat());
    }
}
