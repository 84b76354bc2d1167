//! Messages that encode themselves: [`Encode`].

use thalweg_core::chain::Chain;

use crate::status::Status;

/// A message that encodes itself for sending.
///
/// It is encoded in the task that makes the call, or that ran its handler, without holding a lock. If it panics, or
/// writes a different number of bytes than announced, its own call fails with INTERNAL.
pub trait Encode {
    /// Whether the bytes include gRPC framing. They are then sent verbatim, without a prefix, and never compressed.
    const IS_FRAMED: bool = false;

    /// Returns the number of bytes that [`encode`](Encode::encode) appends.
    ///
    /// It must be exact: the message's prefix is written first, with this length.
    fn encoded_len(&self) -> usize;

    /// Appends exactly [`encoded_len`](Encode::encoded_len) bytes to `out` and does not change its existing content.
    fn encode(&self, out: &mut Vec<u8>);

    /// Like [`encode`](Encode::encode), but may keep [`Bytes`](bytes::Bytes) by reference instead of copying them. Used
    /// for large messages.
    fn encode_chained(&self, out: &mut Chain) {
        self.encode(out.buffer());
    }

    /// Returns whether the message may be compressed. Called only if the call compresses messages.
    fn may_be_compressed(&self) -> bool {
        true
    }

    /// Reports that the message was encoded, or the status that ends the call instead. The length is that on the wire,
    /// after compression and without the prefix.
    fn note_encoded(&self, outcome: Result<usize, &Status>) {
        let _ = outcome;
    }
}
