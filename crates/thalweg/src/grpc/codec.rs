//! Between messages and envelopes: serialisation and compression in one step.

use bytes::Bytes;
use tonic::Status;

use super::{
    compression::Encoding,
    envelope::{self, EnvelopeError, MessageTooLong, PREFIX_LEN, Prefix},
};
use crate::message::Message;

/// Appends `message` with its prefix to `out`, compressed where that makes it smaller.
pub fn encode<M: Message>(message: &M, encoding: Encoding, out: &mut Vec<u8>) -> Result<(), MessageTooLong> {
    let len = message.encoded_len();
    if encoding.compresses() && len > 0 {
        let mut plain = Vec::with_capacity(len);
        message.encode(&mut plain);
        return compress(&plain, encoding, out);
    }
    out.reserve(PREFIX_LEN + len);
    envelope::emit(out, false, |out| message.encode(out))
}

/// Reads the message that fills `body`, of which `prefix` told.
///
/// `encoding` is the sender's `grpc-encoding`; `size_max` bounds the message after decompression, in bytes.
pub fn decode<M: Message>(
    prefix: Prefix,
    body: &[u8],
    encoding: Encoding,
    size_max: usize,
) -> Result<M, Status> {
    let message = if prefix.compressed {
        if !encoding.compresses() {
            return Err(EnvelopeError::UnexpectedCompression.into());
        }
        let plain = encoding.decompress(body, size_max)?;
        M::decode_owned(Bytes::from(plain))
    } else {
        M::decode(body)
    };
    message.map_err(|error| Status::internal(error.to_string()))
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
        encode(&message, encoding, &mut wire).unwrap();
        assert_eq!(&wire[..6], b"before");
        let prefix = Prefix::parse(&wire[6..], usize::MAX).unwrap().unwrap();
        assert_eq!((prefix.compressed, prefix.envelope_len()), (compressed, wire.len() - 6));
        let body = &wire[6 + PREFIX_LEN..];
        assert_eq!(decode::<Raw>(prefix, body, encoding, message.0.len()).unwrap(), message);
    }

    #[test]
    fn messages_are_compressed_where_it_pays() {
        check(b"", Encoding::Identity, false);
        check(&[7; 1_000], Encoding::Identity, false);
        check(b"", Encoding::Gzip, false);
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
            let prefix = Prefix { compressed, len: bytes.len() };
            let status = decode::<Never>(prefix, bytes, Encoding::Gzip, 10).err().unwrap();
            assert_eq!((status.code(), status.message()), expected);
        };
        let mut zeros = Vec::new();
        Encoding::Gzip.compress(&[0; 11], &mut zeros);
        let too_large = "received message after decompression larger than max 10";
        check(false, b"", (tonic::Code::Internal, "the message could not be decoded: never"));
        check(true, &zeros, (tonic::Code::ResourceExhausted, too_large));
    }
}
