//! Conversion between messages and envelopes: prefix and compression in one step.

use std::cell::Cell;

use bytes::Bytes;
use thalweg_core::chain::Chain;

use super::{
    compression::Encoding,
    envelope::{self, EnvelopeError, MessageTooLong, PREFIX_LEN, Prefix},
};
use crate::buffers;
use crate::encode::Encode;
use crate::status::{Code, Status};

/// Compression of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compress {
    pub(crate) encoding: Encoding,
    /// Whether to keep the compressed form if it is not smaller.
    pub(crate) always: bool,
}

/// Appends `message` with its prefix to `out`. `len` is its encoded length.
fn encode<M: Encode>(
    message: &M,
    len: usize,
    compress: Compress,
    out: &mut Vec<u8>,
) -> Result<(), MessageTooLong> {
    if compress.encoding.compresses() {
        let mut plain = Vec::with_capacity(len);
        message.encode(&mut plain);
        return compressed(&plain, compress, out);
    }
    out.reserve(PREFIX_LEN + len);
    envelope::emit(out, false, |out| message.encode(out))
}

/// From this length on, in bytes, a message may have parts that are better kept than copied.
pub(crate) const CHAINED_LEN_MIN: usize = 4 * 1024;

/// Like [`encode`], but need not copy large parts of `message`.
///
/// `out` is unchanged on error.
pub(crate) fn encode_chained<M: Encode>(
    message: &M,
    len: usize,
    compress: Compress,
    out: &mut Chain,
) -> Result<(), MessageTooLong> {
    if len < CHAINED_LEN_MIN || compress.encoding.compresses() {
        return encode(message, len, compress, out.buffer());
    }
    let (mark, before) = (out.mark(), out.len());
    out.buffer().extend_from_slice(&[0; PREFIX_LEN]);
    message.encode_chained(out);
    match envelope::prefix(false, out.len() - before - PREFIX_LEN) {
        Ok(prefix) => {
            out.buffer()[mark.buffer_len()..mark.buffer_len() + PREFIX_LEN].copy_from_slice(&prefix);
            Ok(())
        }
        Err(error) => {
            out.truncate(mark);
            Err(error)
        }
    }
}

/// Received bytes, starting at a message's prefix.
#[derive(Debug)]
pub(crate) enum Wire<'a> {
    /// In a buffer that is reused: bytes to keep must be copied.
    Borrowed(&'a [u8]),
    /// In a buffer of their own, which a large message may keep.
    Gathered(Vec<u8>),
    /// Only the message, received without prefix and of a permitted length.
    Bare(&'a mut Bytes),
}

/// Minimum length, in bytes, of a gathered message that keeps its buffer. Copying a smaller one is cheaper than
/// reference counting.
pub(crate) const OWN_BUFFER_LEN_MIN: usize = 4 * 1024;

impl Wire<'_> {
    #[inline]
    fn as_bytes(&self) -> &[u8] {
        match self {
            Wire::Borrowed(bytes) => bytes,
            Wire::Gathered(bytes) => bytes,
            Wire::Bare(bytes) => bytes,
        }
    }
}

/// Returns whether a message of `len` bytes should keep its own buffer.
#[inline]
pub(crate) fn keeps_buffer(len: usize) -> bool {
    len >= OWN_BUFFER_LEN_MIN
}

/// The only message in one direction of a call, as received: prefix and bytes, possibly compressed.
#[derive(Debug)]
pub struct Envelope<'a> {
    wire: Wire<'a>,
    encoding: Encoding,
    message_size_max: usize,
    /// Receives the length of the message if it was compressed.
    decompressed_len: Option<&'a Cell<usize>>,
}

/// The bytes of a message, decompressed and without prefix.
#[derive(Debug)]
pub enum Payload<'a> {
    /// In a buffer that is reused: bytes to keep must be copied.
    Borrowed(&'a [u8]),
    /// In a buffer of their own, parts of which a message may keep.
    Owned(Bytes),
}

impl<'a> Envelope<'a> {
    /// Creates an envelope. `encoding` is the sender's `grpc-encoding`. `message_size_max` limits the message, also
    /// after decompression, in bytes.
    #[inline]
    pub(crate) fn new(wire: Wire<'a>, encoding: Encoding, message_size_max: usize) -> Self {
        Self { wire, encoding, message_size_max, decompressed_len: None }
    }

    /// Stores the length of the message in `decompressed_len` when it is opened, if it was compressed.
    pub(crate) fn with_decompressed_len(self, decompressed_len: &'a Cell<usize>) -> Self {
        Self { decompressed_len: Some(decompressed_len), ..self }
    }

    /// Returns the message's bytes, decompressed if necessary.
    ///
    /// # Errors
    /// The status to end the call with, if this is not one whole message within the limits and of the negotiated
    /// encoding.
    #[inline]
    pub fn open(&mut self) -> Result<Payload<'_>, Status> {
        let prefix = self.prefix()?;
        let opened = match &mut self.wire {
            Wire::Bare(message) => Ok(Payload::Owned(std::mem::take(*message))),
            Wire::Gathered(wire) if keeps_buffer(prefix.len) => {
                open_gathered(prefix, std::mem::take(wire), self.encoding, self.message_size_max)
            }
            wire => open_borrowed(prefix, wire.as_bytes(), self.encoding, self.message_size_max),
        }?;
        if prefix.compressed
            && let Some(len) = self.decompressed_len
        {
            len.set(opened.as_bytes().len());
        }
        Ok(opened)
    }

    /// Decompresses a compressed message. Passes its lengths on the wire and decompressed to `note`. A message that
    /// can't be opened is left unchanged.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn decompressed(self, note: impl FnOnce(usize, usize)) -> Self {
        let Ok(prefix) = self.prefix() else { return self };
        if !prefix.compressed {
            note(prefix.len, prefix.len);
            return self;
        }
        let mut wire = self.wire.as_bytes().to_vec();
        decompress_in_place(&mut wire, self.encoding, self.message_size_max, |plain| {
            note(prefix.len, plain);
            if let Some(len) = self.decompressed_len {
                len.set(plain);
            }
        });
        Self { wire: Wire::Gathered(wire), ..self }
    }

    #[inline]
    fn prefix(&self) -> Result<Prefix, Status> {
        if let Wire::Bare(message) = &self.wire {
            return Ok(Prefix { compressed: false, len: message.len() });
        }
        let received = self.wire.as_bytes().len();
        match Prefix::parse(self.wire.as_bytes(), self.message_size_max)? {
            None if received == 0 => Err(no_message()),
            Some(prefix) if received == prefix.envelope_len() => Ok(prefix),
            Some(prefix) if received > prefix.envelope_len() => Err(more_than_one_message()),
            _ => Err(EnvelopeError::Truncated { received }.into()),
        }
    }
}

/// Returns the status of a call whose only message is missing: UNIMPLEMENTED on both sides, according to gRPC's list
/// of [status codes].
///
/// [status codes]: https://github.com/grpc/grpc/blob/master/doc/statuscodes.md
#[cold]
pub fn no_message() -> Status {
    Status::local(Code::Unimplemented, "expected one message, received none")
}

/// Like [`no_message`], for more than one message.
#[cold]
pub fn more_than_one_message() -> Status {
    Status::local(Code::Unimplemented, "expected one message, received more than one")
}

/// Opens the complete message at the front of `wire`, whose prefix is `prefix`.
#[inline]
pub(crate) fn open_borrowed(
    prefix: Prefix,
    wire: &[u8],
    encoding: Encoding,
    message_size_max: usize,
) -> Result<Payload<'_>, Status> {
    let message = &wire[PREFIX_LEN..prefix.envelope_len()];
    if prefix.compressed {
        return decompress(message, encoding, message_size_max).map(Payload::Owned);
    }
    Ok(Payload::Borrowed(message))
}

/// Like [`open_borrowed`], but lets the message keep the buffer.
pub(crate) fn open_gathered(
    prefix: Prefix,
    wire: Vec<u8>,
    encoding: Encoding,
    message_size_max: usize,
) -> Result<Payload<'static>, Status> {
    let span = PREFIX_LEN..prefix.envelope_len();
    if prefix.compressed {
        return decompress(&wire[span], encoding, message_size_max).map(Payload::Owned);
    }
    Ok(Payload::Owned(buffers::pooled(wire).slice(span)))
}

/// Decompresses the message in the envelope `wire`, if it is compressed, and reports its length. A message that can't
/// be decompressed is left unchanged; opening it fails.
#[cold]
pub(crate) fn decompress_in_place(
    wire: &mut Vec<u8>,
    encoding: Encoding,
    message_size_max: usize,
    note_len: impl FnOnce(usize),
) {
    let Ok(Some(prefix)) = Prefix::parse(wire, message_size_max) else { return };
    if !prefix.compressed || prefix.envelope_len() != wire.len() {
        return;
    }
    let Ok(message) = decompress(&wire[PREFIX_LEN..], encoding, message_size_max) else { return };
    let Ok(prefix) = envelope::prefix(false, message.len()) else { return };
    note_len(message.len());
    *wire = [&prefix, &message[..]].concat();
}

#[cold]
fn decompress(compressed: &[u8], encoding: Encoding, message_size_max: usize) -> Result<Bytes, Status> {
    if !encoding.compresses() {
        return Err(EnvelopeError::UnexpectedCompression.into());
    }
    Ok(buffers::compact(encoding.decompress(compressed, message_size_max)?))
}

impl Payload<'_> {
    /// Returns the message's bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Payload::Borrowed(bytes) => bytes,
            Payload::Owned(bytes) => bytes,
        }
    }
}

fn compressed(plain: &[u8], compress: Compress, out: &mut Vec<u8>) -> Result<(), MessageTooLong> {
    let start = out.len();
    envelope::emit(out, true, |out| compress.encoding.compress(plain, out))?;
    if !compress.always && out.len() - start - PREFIX_LEN >= plain.len() {
        out.truncate(start);
        return envelope::emit(out, false, |out| out.extend_from_slice(plain));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::testing::{Plain, Seeded};

    /// Checks the encoding of `message`, and that decoding restores it.
    fn check(message: &[u8], encoding: Encoding, always: bool, compressed: bool) {
        let (message, compress) = (Plain(message), Compress { encoding, always });
        let mut wire = b"before".to_vec();
        encode(&message, message.encoded_len(), compress, &mut wire).unwrap();
        assert_eq!(&wire[..6], b"before");
        let prefix = Prefix::parse(&wire[6..], usize::MAX).unwrap().unwrap();
        assert_eq!((prefix.compressed, prefix.envelope_len()), (compressed, wire.len() - 6));
        let mut chain = Chain::default();
        chain.buffer().extend_from_slice(b"before");
        encode_chained(&message, message.0.len(), compress, &mut chain).unwrap();
        assert_eq!(chain.take_parts().concat(), wire);
        let wire_len = wire.len() - 6;
        let check_opened = |wire, is_kept: bool| {
            // Compression may have made it longer.
            let mut envelope = Envelope::new(wire, encoding, message.0.len().max(wire_len));
            let payload = envelope.open().unwrap();
            assert_eq!(payload.as_bytes(), message.0);
            assert_eq!(matches!(payload, Payload::Owned(_)), is_kept);
        };
        check_opened(Wire::Borrowed(&wire[6..]), compressed);
        check_opened(Wire::Gathered(wire[6..].to_vec()), compressed || message.0.len() >= OWN_BUFFER_LEN_MIN);
    }

    #[test]
    fn messages_are_compressed_where_it_pays() {
        for always in [false, true] {
            check(b"", Encoding::Identity, always, false);
            check(&[7; 1_000], Encoding::Identity, always, false);
            check(&[7; 10_000], Encoding::Identity, always, false);
            check(b"", Encoding::Gzip, always, always);
            check(&[7; 10_000], Encoding::Gzip, always, true);
            check(&[7; 1_000], Encoding::Gzip, always, true);
            check(&Seeded(4).bytes(1_000..1_001), Encoding::Gzip, always, always);
        }
    }

    #[test]
    fn errors_have_codes() {
        let check = |encoding, compressed, bytes: &[u8], expected: (Code, &str)| {
            let mut wire = envelope::prefix(compressed, bytes.len()).unwrap().to_vec();
            wire.extend_from_slice(bytes);
            let mut envelope = Envelope::new(Wire::Gathered(wire), encoding, 100);
            let status = envelope.open().err().unwrap();
            assert_eq!((status.code(), status.message()), expected);
        };
        let mut zeros = Vec::new();
        Encoding::Gzip.compress(&[0; 101], &mut zeros);
        let too_large = "received message after decompression larger than max 100: see the receiver's \
                         max_decoding_message_size";
        check(Encoding::Gzip, true, &zeros, (Code::ResourceExhausted, too_large));
        let unexpected = "received a message with the compressed flag set, with identity or no grpc-encoding";
        check(Encoding::Identity, true, b"", (Code::Internal, unexpected));
    }

    #[test]
    fn envelope_requires_exactly_one_message() {
        let check = |wire: &[u8], expected: Result<&[u8], (Code, &str)>| {
            let mut envelope = Envelope::new(Wire::Borrowed(wire), Encoding::Identity, 100);
            let outcome = envelope.open();
            let outcome = outcome.as_ref().map(Payload::as_bytes);
            assert_eq!(outcome.map_err(|status| (status.code(), status.message())), expected, "{wire:?}");
        };
        check(b"\0\0\0\0\x02hi", Ok(b"hi"));
        check(b"", Err((Code::Unimplemented, "expected one message, received none")));
        let two = "expected one message, received more than one";
        check(b"\0\0\0\0\0\0\0\0\0\0", Err((Code::Unimplemented, two)));
        let cut = |at| format!("the stream ended inside a message, {at} bytes after its start");
        check(b"\0\0", Err((Code::Internal, &cut(2))));
        check(b"\0\0\0\0\x02h", Err((Code::Internal, &cut(6))));
    }
}
