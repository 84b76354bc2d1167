//! What a call sends: bytes that write themselves.

use crate::chain::Chain;

/// A message to be sent, which knows how to write itself.
///
/// What it does must not panic, and must not take long: small messages are written under the lock of a connection,
/// straight into its output.
pub trait Encode {
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
}
