//! The buffers that encoders write and decoders read.

use bytes::buf::UninitSlice;
use bytes::{Buf, BufMut, Bytes};

use crate::chain::Chain;

/// The bytes of one received message.
#[derive(Debug)]
pub struct DecodeBuf<'a> {
    buffer: &'a mut Bytes,
    /// Length of the rest of the message. The buffer may have more.
    len: usize,
}

impl<'a> DecodeBuf<'a> {
    /// Takes the first `len` bytes of a buffer.
    #[doc(hidden)]
    pub fn new(buffer: &'a mut Bytes, len: usize) -> Self {
        debug_assert!(len <= buffer.len());
        Self { buffer, len }
    }
}

impl Buf for DecodeBuf<'_> {
    #[inline]
    fn remaining(&self) -> usize {
        self.len
    }

    #[inline]
    fn chunk(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        assert!(count <= self.len, "advance beyond the end of the message: {count} of {}", self.len);
        self.len -= count;
        self.buffer.advance(count);
    }

    /// Copies nothing: the message keeps a part of the buffer.
    #[inline]
    fn copy_to_bytes(&mut self, len: usize) -> Bytes {
        assert!(len <= self.len, "read beyond the end of the message: {len} of {}", self.len);
        self.len -= len;
        self.buffer.split_to(len)
    }
}

/// A buffer for one message to send. Large [`Bytes`] that are [`put`](BufMut::put) are kept, not copied.
#[derive(Debug)]
pub struct EncodeBuf<'a> {
    buffer: &'a mut Chain,
}

impl<'a> EncodeBuf<'a> {
    /// Appends to a buffer.
    #[doc(hidden)]
    pub fn new(buffer: &'a mut Chain) -> Self {
        Self { buffer }
    }
}

impl EncodeBuf<'_> {
    /// Makes room for so many more bytes.
    #[inline]
    pub fn reserve(&mut self, additional: usize) {
        self.buffer.buffer().reserve(additional);
    }
}

// SAFETY: all methods are those of `Chain`, which keeps the contract of `BufMut`.
#[expect(unsafe_code, reason = "an encoder writes through an implementation of the unsafe trait `BufMut`")]
unsafe impl BufMut for EncodeBuf<'_> {
    #[inline]
    fn remaining_mut(&self) -> usize {
        BufMut::remaining_mut(self.buffer)
    }

    #[inline]
    unsafe fn advance_mut(&mut self, count: usize) {
        // SAFETY: the caller keeps the same contract.
        unsafe { self.buffer.advance_mut(count) }
    }

    #[inline]
    fn chunk_mut(&mut self) -> &mut UninitSlice {
        self.buffer.chunk_mut()
    }

    #[inline]
    fn put<T: Buf>(&mut self, from: T)
    where
        Self: Sized,
    {
        self.buffer.put(from);
    }

    #[inline]
    fn put_slice(&mut self, from: &[u8]) {
        self.buffer.put_slice(from);
    }

    #[inline]
    fn put_bytes(&mut self, byte: u8, count: usize) {
        self.buffer.put_bytes(byte, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoder_sees_one_message() {
        let mut buffer = Bytes::from_static(b"abcdrest");
        let mut message = DecodeBuf::new(&mut buffer, 4);
        assert_eq!((message.remaining(), message.chunk()), (4, &b"abcd"[..]));
        message.advance(1);
        assert_eq!((message.copy_to_bytes(2), message.chunk()), (Bytes::from("bc"), &b"d"[..]));
        assert_eq!(message.get_u8(), b'd');
        assert!(!message.has_remaining());
        assert_eq!(buffer, "rest");
    }

    #[test]
    #[should_panic(expected = "read beyond the end of the message: 3 of 2")]
    fn reading_beyond_the_message_panics() {
        DecodeBuf::new(&mut Bytes::from_static(b"abcd"), 2).copy_to_bytes(3);
    }

    #[test]
    #[should_panic(expected = "advance beyond the end of the message: 3 of 2")]
    fn advancing_beyond_the_message_panics() {
        DecodeBuf::new(&mut Bytes::from_static(b"abcd"), 2).advance(3);
    }

    #[test]
    fn encoder_appends() {
        let mut chain = Chain::default();
        chain.put_slice(b"before ");
        let mut buffer = EncodeBuf::new(&mut chain);
        buffer.reserve(100);
        assert!(buffer.chunk_mut().len() >= 100);
        buffer.put(&b"a"[..]);
        buffer.put_slice(b"b");
        buffer.put_bytes(b'c', 2);
        buffer.put_u16(0x6465);
        assert!(buffer.remaining_mut() > 0);
        assert_eq!(chain.as_contiguous(), Some(&b"before abccde"[..]));
    }
}
