//! What a call sends: bytes that write themselves.

use crate::chain::Chain;
use crate::status::Status;

/// A message to be sent, which knows how to write itself.
///
/// It is written where its call is made, or its handler ran, and no lock is held meanwhile. One that panics, or writes
/// another number of bytes than it said, ends its own call with INTERNAL.
pub trait Encode {
    /// Whether it brings its own framing: it goes out as it is, without a prefix, and is never compressed.
    const IS_FRAMED: bool = false;

    /// How many bytes [`encode`](Encode::encode) appends.
    ///
    /// The message is framed by this number, before it is written: it must be exact.
    fn encoded_len(&self) -> usize;

    /// Appends exactly [`encoded_len`](Encode::encoded_len) bytes to `out`, and leaves what is there alone.
    fn encode(&self, out: &mut Vec<u8>);

    /// As [`encode`](Encode::encode), where parts that are [`Bytes`](bytes::Bytes) can be kept instead of copied; for
    /// large messages.
    fn encode_chained(&self, out: &mut Chain) {
        self.encode(out.buffer());
    }

    /// Whether it may be compressed, where the call's messages are. Only asked then.
    fn may_be_compressed(&self) -> bool {
        true
    }

    /// It was encoded: to so many bytes on the wire, compressed if need be and without the prefix; or it can't be sent.
    ///
    /// # Errors
    /// What the call ends with instead.
    fn note_encoded(&self, outcome: Result<usize, &Status>) {
        let _ = outcome;
    }
}
