//! Encoded output: small parts are copied, large ones kept by reference.

use bytes::buf::UninitSlice;
use bytes::{Buf, BufMut, Bytes};

/// Parts of at least this many bytes are kept. Copying a smaller one costs less than another part.
const PART_LEN_MIN: usize = 4 * 1024;

/// Output buffer of message encoding, which can also hold parts by reference.
///
/// It implements [`BufMut`]. A [`Bytes`] of at least 4 KiB passed to [`put`](BufMut::put) is kept by reference. Since
/// prost writes `bytes` fields of type [`Bytes`] that way, large ones reach the socket without a copy.
#[derive(Debug, Default)]
pub struct Chain {
    buffer: Vec<u8>,
    chained: Vec<ChainedPart>,
    /// Total length of `chained`.
    kept_len: usize,
}

#[derive(Debug)]
struct ChainedPart {
    /// Offset in the buffer before which the part is inserted.
    at: usize,
    bytes: Bytes,
}

impl Chain {
    /// Returns the number of bytes.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.buffer.len() + self.kept_len
    }

    /// Returns whether it is empty.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the buffer for bytes that are always copied.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Appends `bytes`, by reference if they are at least 4 KiB.
    #[inline]
    pub fn push(&mut self, bytes: Bytes) {
        if bytes.len() < PART_LEN_MIN {
            self.buffer.extend_from_slice(&bytes);
        } else {
            self.kept_len += bytes.len();
            self.chained.push(ChainedPart { at: self.buffer.len(), bytes });
        }
    }

    /// Returns all bytes if they are contiguous.
    #[must_use]
    #[inline]
    pub fn as_contiguous(&self) -> Option<&[u8]> {
        self.chained.is_empty().then_some(&self.buffer)
    }

    /// Returns all bytes, after it has copied the kept parts into the buffer.
    pub fn make_contiguous(&mut self) -> &[u8] {
        if !self.chained.is_empty() {
            let mut bytes = Vec::with_capacity(self.len());
            self.copy_to(&mut bytes);
            *self = Self { buffer: bytes, ..Self::default() };
        }
        &self.buffer
    }

    /// Returns the current end, for [`truncate`](Self::truncate).
    #[must_use]
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { buffer_len: self.buffer.len(), kept_count: self.chained.len() }
    }

    /// Removes everything appended after `mark`.
    #[inline]
    pub fn truncate(&mut self, mark: Mark) {
        self.buffer.truncate(mark.buffer_len);
        self.kept_len -=
            self.chained.drain(mark.kept_count..).map(|chained| chained.bytes.len()).sum::<usize>();
    }

    /// Removes all bytes.
    #[inline]
    pub fn clear(&mut self) {
        self.truncate(Mark { buffer_len: 0, kept_count: 0 });
    }

    /// Appends all bytes to `bytes`.
    pub fn copy_to(&self, bytes: &mut Vec<u8>) {
        let mut begin = 0;
        for chained in &self.chained {
            let at = chained.at.min(self.buffer.len());
            bytes.extend_from_slice(&self.buffer[begin..at]);
            bytes.extend_from_slice(&chained.bytes);
            begin = at;
        }
        bytes.extend_from_slice(&self.buffer[begin..]);
    }

    /// Removes all bytes and returns them in parts: the kept ones and the buffer between them.
    pub fn take_parts(&mut self) -> Vec<Bytes> {
        let mut rest = if self.buffer.len() < PART_LEN_MIN {
            let copied = Bytes::copy_from_slice(&self.buffer);
            self.buffer.clear();
            copied
        } else {
            Bytes::from(std::mem::take(&mut self.buffer))
        };
        let mut parts = Vec::with_capacity(2 * self.chained.len() + 1);
        let mut begin = 0;
        for ChainedPart { at, bytes } in self.chained.drain(..) {
            // A message that truncates the buffer, which is forbidden, must not panic here.
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
pub struct Mark {
    buffer_len: usize,
    kept_count: usize,
}

impl Mark {
    /// Returns the position in [`Chain::buffer`].
    #[must_use]
    #[inline]
    pub fn buffer_len(self) -> usize {
        self.buffer_len
    }
}

// SAFETY: bytes written through `chunk_mut` and `advance_mut` go to the buffer, a `Vec<u8>`. Its own `BufMut`
// implementation does the work and upholds the contract.
#[expect(unsafe_code, reason = "encoders write through an implementation of the unsafe trait `BufMut`")]
unsafe impl BufMut for Chain {
    #[inline]
    fn remaining_mut(&self) -> usize {
        BufMut::remaining_mut(&self.buffer)
    }

    #[inline]
    unsafe fn advance_mut(&mut self, count: usize) {
        // SAFETY: the caller upholds the same contract for the same buffer.
        unsafe { self.buffer.advance_mut(count) }
    }

    #[inline]
    fn chunk_mut(&mut self) -> &mut UninitSlice {
        self.buffer.chunk_mut()
    }

    #[inline]
    fn put<T: Buf>(&mut self, mut src: T)
    where
        Self: Sized,
    {
        if src.remaining() < PART_LEN_MIN {
            self.buffer.put(src);
        } else {
            // For `Bytes` this takes a reference. Anything else is copied, as by the buffer.
            let len = src.remaining();
            self.push(src.copy_to_bytes(len));
        }
    }

    #[inline]
    fn put_slice(&mut self, src: &[u8]) {
        self.buffer.extend_from_slice(src);
    }

    #[inline]
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
    fn large_parts_are_not_copied_and_order_is_kept() {
        let large = Bytes::from(vec![7; PART_LEN_MIN]);
        let mut chain = Chain::default();
        chain.put_u8(1);
        chain.put(large.clone());
        chain.put(Bytes::from_static(b"small"));
        chain.put(&vec![8; PART_LEN_MIN][..]);
        chain.put(large.clone());
        assert_eq!(chain.len(), 6 + 3 * PART_LEN_MIN);
        assert_eq!(chain.as_contiguous(), None);
        let parts = chain.take_parts();
        assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [1, 4096, 5, 4096, 4096]);
        assert_eq!(parts[1].as_ptr(), large.as_ptr());
        assert_eq!(parts[4].as_ptr(), large.as_ptr());
        let expected = [b"\x01", &large[..], b"small", &[8; PART_LEN_MIN], &large].concat();
        assert_eq!(joined(&parts), expected);
        assert!(chain.is_empty() && chain.take_parts().is_empty());
        for part in parts {
            chain.push(part);
        }
        assert_eq!(chain.make_contiguous(), expected);
        assert_eq!((chain.as_contiguous(), chain.len()), (Some(&expected[..]), expected.len()));
    }

    #[test]
    fn forgotten_part_leaves_the_rest() {
        let mut chain = Chain::default();
        chain.put_slice(b"before");
        chain.put(Bytes::from(vec![1; PART_LEN_MIN]));
        let mark = chain.mark();
        chain.put_slice(b"behind");
        chain.put(Bytes::from(vec![2; PART_LEN_MIN]));
        chain.truncate(mark);
        assert_eq!(chain.len(), 6 + PART_LEN_MIN);
        chain.put_slice(b"!");
        assert_eq!(joined(&chain.take_parts()), [b"before", &[1; PART_LEN_MIN][..], b"!"].concat());
    }
}
