//! Between messages and envelopes: serialisation and compression in one step.

use bytes::Bytes;
use tonic::Status;

use super::{
    compression::Encoding,
    envelope::{self, EnvelopeError, MessageTooLong, PREFIX_LEN, Prefix},
};
use crate::buffers;
use crate::chain::Chain;
use crate::message::{DecodeError, Message};

/// Appends `message`, whose encoded length is `len`, with its prefix to `out`, compressed where that makes it smaller.
pub fn encode<M: Message>(
    message: &M,
    len: usize,
    encoding: Encoding,
    out: &mut Vec<u8>,
) -> Result<(), MessageTooLong> {
    if encoding.compresses() && len > 0 {
        let mut plain = Vec::with_capacity(len);
        message.encode(&mut plain);
        return compress(&plain, encoding, out);
    }
    out.reserve(PREFIX_LEN + len);
    envelope::emit(out, false, |out| message.encode(out))
}

/// A message of at least this many bytes may consist of parts that are better kept than copied.
const CHAINED_LEN_MIN: usize = 4 * 1024;

/// As [`encode`], where large parts of `message` need not be copied.
///
/// On an error `out` is as it was.
pub fn encode_chained<M: Message>(
    message: &M,
    len: usize,
    encoding: Encoding,
    out: &mut Chain,
) -> Result<(), MessageTooLong> {
    if len < CHAINED_LEN_MIN || encoding.compresses() {
        return encode(message, len, encoding, out.buffer());
    }
    let (mark, before) = (out.mark(), out.len());
    out.buffer().extend_from_slice(&[0; PREFIX_LEN]);
    message.encode_chained(out);
    match envelope::prefix(false, out.len() - before - PREFIX_LEN) {
        Ok(prefix) => {
            out.buffer()[mark.buffer_len..mark.buffer_len + PREFIX_LEN].copy_from_slice(&prefix);
            Ok(())
        }
        Err(error) => {
            out.truncate(mark);
            Err(error)
        }
    }
}

/// Received bytes, from the prefix of a message on.
#[derive(Debug)]
pub enum Wire<'a> {
    /// They lie in a buffer that goes on to be used: what is kept of them is copied.
    Lent(&'a [u8]),
    /// They were gathered in a buffer of their own: a large message may keep that.
    Gathered(Vec<u8>),
}

/// A gathered message of this many bytes keeps its buffer; a smaller one is cheaper to copy than to count references to.
const KEPT_LEN_MIN: usize = 4 * 1024;

impl Wire<'_> {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Wire::Lent(bytes) => bytes,
            Wire::Gathered(bytes) => bytes,
        }
    }
}

/// Whether a message of `len` bytes is worth a buffer of its own.
pub fn keeps_buffer(len: usize) -> bool {
    len >= KEPT_LEN_MIN
}

/// Reads the message at the front of `wire`, of which `prefix` told; it must be there whole.
///
/// `encoding` is the sender's `grpc-encoding`; `size_max` bounds the message after decompression, in bytes.
#[inline]
pub fn decode<M: Message>(
    prefix: Prefix,
    wire: Wire<'_>,
    encoding: Encoding,
    size_max: usize,
) -> Result<M, Status> {
    let span = PREFIX_LEN..prefix.envelope_len();
    let message = if prefix.compressed {
        if !encoding.compresses() {
            return Err(EnvelopeError::UnexpectedCompression.into());
        }
        let plain = encoding.decompress(&wire.as_bytes()[span], size_max)?;
        M::decode_owned(Bytes::from(plain))
    } else {
        match wire {
            Wire::Gathered(bytes) if keeps_buffer(prefix.len) => {
                M::decode_owned(buffers::lend(bytes).slice(span))
            }
            wire => M::decode(&wire.as_bytes()[span]),
        }
    };
    message.map_err(|error| undecodable(&error))
}

#[cold]
fn undecodable(error: &DecodeError) -> Status {
    Status::internal(error.to_string())
}

/// Reads the message that is all there is in one direction of a call.
#[inline]
pub fn decode_only<M: Message>(wire: Wire<'_>, encoding: Encoding, size_max: usize) -> Result<M, Status> {
    let received = wire.as_bytes().len();
    match Prefix::parse(wire.as_bytes(), size_max)? {
        None if received == 0 => Err(Status::internal("one message was expected, and none came")),
        Some(prefix) if received == prefix.envelope_len() => decode(prefix, wire, encoding, size_max),
        Some(prefix) if received > prefix.envelope_len() => {
            Err(Status::internal("one message was expected, and more than one came"))
        }
        _ => Err(EnvelopeError::Truncated { received }.into()),
    }
}

fn compress(plain: &[u8], encoding: Encoding, out: &mut Vec<u8>) -> Result<(), MessageTooLong> {
    let start = out.len();
    envelope::emit(out, true, |out| encoding.compress(plain, out))?;
    if out.len() - start - PREFIX_LEN >= plain.len() {
        out.truncate(start);
        return envelope::emit(out, false, |out| out.extend_from_slice(plain));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        grpc::testing::Seeded,
        message::{DecodeError, Raw},
    };

    /// What `message` becomes on the wire, and that it comes back from there.
    fn check(message: &[u8], encoding: Encoding, compressed: bool) {
        let message = Raw(Bytes::copy_from_slice(message));
        let mut wire = b"before".to_vec();
        encode(&message, message.encoded_len(), encoding, &mut wire).unwrap();
        assert_eq!(&wire[..6], b"before");
        let prefix = Prefix::parse(&wire[6..], usize::MAX).unwrap().unwrap();
        assert_eq!((prefix.compressed, prefix.envelope_len()), (compressed, wire.len() - 6));
        let mut chain = Chain::default();
        chain.buffer().extend_from_slice(b"before");
        encode_chained(&message, message.0.len(), encoding, &mut chain).unwrap();
        assert_eq!(chain.take_parts().concat(), wire);
        let decoded = |wire| decode::<Raw>(prefix, wire, encoding, message.0.len()).unwrap();
        assert_eq!(decoded(Wire::Lent(&wire[6..])), message);
        assert_eq!(decoded(Wire::Gathered(wire[6..].to_vec())), message);
    }

    #[test]
    fn messages_are_compressed_where_it_pays() {
        check(b"", Encoding::Identity, false);
        check(&[7; 1_000], Encoding::Identity, false);
        check(&[7; 10_000], Encoding::Identity, false);
        check(b"", Encoding::Gzip, false);
        check(&[7; 10_000], Encoding::Gzip, true);
        check(&[7; 1_000], Encoding::Gzip, true);
        check(&Seeded(4).bytes(1_000..1_001), Encoding::Gzip, false);
    }

    #[test]
    fn errors_have_codes() {
        struct Never;
        impl Message for Never {
            fn encoded_len(&self) -> usize {
                0
            }
            fn encode(&self, _: &mut Vec<u8>) {}
            fn decode(_: &[u8]) -> Result<Self, DecodeError> {
                Err(DecodeError::new("never"))
            }
        }
        let check = |compressed, bytes: &[u8], expected: (tonic::Code, &str)| {
            let mut wire = envelope::prefix(compressed, bytes.len()).unwrap().to_vec();
            wire.extend_from_slice(bytes);
            let status = decode_only::<Never>(Wire::Gathered(wire), Encoding::Gzip, 100).err().unwrap();
            assert_eq!((status.code(), status.message()), expected);
        };
        let mut zeros = Vec::new();
        Encoding::Gzip.compress(&[0; 101], &mut zeros);
        let too_large = "received message after decompression larger than max 100";
        check(false, b"", (tonic::Code::Internal, "the message could not be decoded: never"));
        check(true, &zeros, (tonic::Code::ResourceExhausted, too_large));
    }

    #[test]
    fn one_message_alone() {
        let check = |wire: &[u8], expected: Result<&[u8], &str>| {
            let outcome = decode_only::<Raw>(Wire::Lent(wire), Encoding::Identity, 100);
            let outcome = outcome.as_ref().map(|raw| &raw.0[..]).map_err(Status::message);
            assert_eq!(outcome, expected, "{wire:?}");
        };
        check(b"\0\0\0\0\x02hi", Ok(b"hi"));
        check(b"", Err("one message was expected, and none came"));
        check(b"\0\0\0\0\0\0\0\0\0\0", Err("one message was expected, and more than one came"));
        check(b"\0\0", Err("the stream ended inside a message, 2 bytes after its start"));
        check(b"\0\0\0\0\x02h", Err("the stream ended inside a message, 6 bytes after its start"));
    }
}
