//! Message compression: `grpc-encoding`, `grpc-accept-encoding`, and the encodings themselves.

use std::{
    fmt,
    io::{self, Read, Write},
};

use flate2::{Compression, bufread::GzDecoder, write::GzEncoder};
use thalweg_http2::fields::{FieldList, Indexing};

use crate::status::Status;

/// How the messages of one direction of a call are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// Not at all.
    #[default]
    Identity,
    /// gzip (RFC 1952).
    Gzip,
}

impl Encoding {
    /// All that this library knows.
    pub const ALL: [Encoding; 2] = [Encoding::Identity, Encoding::Gzip];

    /// The value of `grpc-encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Identity => "identity",
            Encoding::Gzip => "gzip",
        }
    }

    /// Whether messages may be flagged as compressed: all but identity.
    pub fn compresses(self) -> bool {
        self != Encoding::Identity
    }

    /// Appends `grpc-encoding` to the head of a request or response, unless it is identity, which needs no mention.
    pub fn emit(self, fields: &mut FieldList) {
        if self.compresses() {
            fields.push(b"grpc-encoding", self.name().as_bytes(), Indexing::Insert);
        }
    }

    /// Appends `message`, compressed, to `out`. Identity appends it as it is.
    pub fn compress(self, message: &[u8], out: &mut Vec<u8>) {
        match self {
            Encoding::Identity => out.extend_from_slice(message),
            Encoding::Gzip => {
                let mut encoder = GzEncoder::new(out, Compression::default());
                let written = encoder.write_all(message).and_then(|()| encoder.finish().map(drop));
                written.expect("a Vec takes all that is written to it");
            }
        }
    }

    /// Decompresses one message of at most `size_max` bytes.
    ///
    /// No more than `size_max + 1` bytes are ever inflated, whatever `message` would become.
    pub fn decompress(self, message: &[u8], size_max: usize) -> Result<Vec<u8>, DecompressError> {
        let inflated = match self {
            Encoding::Identity => message.to_vec(),
            Encoding::Gzip => {
                // A guess, bounded by what has arrived: text shrinks to a third or so.
                let mut inflated = Vec::with_capacity(message.len().saturating_mul(3).min(size_max));
                // One member: a peer that sends a million empty ones has each byte cost more than it should.
                let mut decoder = GzDecoder::new(message);
                let read = (&mut decoder).take(size_max as u64 + 1).read_to_end(&mut inflated);
                read.map_err(DecompressError::Corrupt)?;
                if inflated.len() <= size_max && !decoder.into_inner().is_empty() {
                    return Err(DecompressError::Corrupt(io::Error::other("bytes follow its end")));
                }
                inflated
            }
        };
        if inflated.len() > size_max {
            return Err(DecompressError::TooLarge { size_max });
        }
        Ok(inflated)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A compressed message that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum DecompressError {
    /// It is not what `grpc-encoding` says.
    #[error("the compressed message is corrupt: {0}")]
    Corrupt(io::Error),
    /// It would be larger than is accepted.
    #[error("received message after decompression larger than max {size_max}")]
    TooLarge {
        /// The largest accepted, in bytes.
        size_max: usize,
    },
}

impl From<DecompressError> for Status {
    fn from(error: DecompressError) -> Status {
        match error {
            DecompressError::Corrupt(_) => Status::internal(error.to_string()),
            DecompressError::TooLarge { .. } => Status::resource_exhausted(error.to_string()),
        }
    }
}

/// A set of encodings: what one side of a call accepts. Identity is always in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EncodingSet(u8);

impl EncodingSet {
    /// No compression.
    pub const IDENTITY: EncodingSet = EncodingSet(1 << Encoding::Identity as u8);

    /// All that this library knows.
    pub const ALL: EncodingSet = EncodingSet(1 << Encoding::Identity as u8 | 1 << Encoding::Gzip as u8);

    /// The set with `encoding` in it.
    pub fn with(self, encoding: Encoding) -> EncodingSet {
        EncodingSet(self.0 | encoding.bit())
    }

    /// Whether `encoding` is in the set.
    pub fn contains(self, encoding: Encoding) -> bool {
        self.0 & encoding.bit() != 0
    }

    /// Reads `grpc-accept-encoding`: names separated by commas. What this library does not know is passed over.
    pub fn parse(value: &[u8]) -> EncodingSet {
        let known = |name: &[u8]| {
            let name = name.trim_ascii();
            Encoding::ALL.into_iter().find(|encoding| encoding.name().as_bytes() == name)
        };
        value.split(|byte| *byte == b',').filter_map(known).fold(EncodingSet::IDENTITY, EncodingSet::with)
    }

    /// The value of `grpc-accept-encoding`.
    pub fn value(self) -> &'static str {
        if self.contains(Encoding::Gzip) { "identity,gzip" } else { "identity" }
    }

    /// Reads `grpc-encoding`, as one that accepts this set.
    ///
    /// # Errors
    ///
    /// An encoding outside the set ends the call with UNIMPLEMENTED, and a server names the set in the
    /// `grpc-accept-encoding` of its answer.
    pub fn choose(self, grpc_encoding: &[u8]) -> Result<Encoding, UnsupportedEncoding> {
        Encoding::ALL
            .into_iter()
            .find(|encoding| encoding.name().as_bytes() == grpc_encoding && self.contains(*encoding))
            .ok_or_else(|| UnsupportedEncoding {
                name: String::from_utf8_lossy(grpc_encoding).into_owned(),
                accepted: self,
            })
    }
}

impl Default for EncodingSet {
    fn default() -> EncodingSet {
        EncodingSet::ALL
    }
}

impl fmt::Debug for EncodingSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Encoding::ALL.into_iter().filter(|encoding| self.contains(*encoding))).finish()
    }
}

/// The peer compresses with what we do not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("grpc-encoding {name:?} is not supported; accepted are {}", .accepted.value())]
pub struct UnsupportedEncoding {
    /// The peer's `grpc-encoding`.
    pub name: String,
    /// What would have been accepted.
    pub accepted: EncodingSet,
}

impl From<UnsupportedEncoding> for Status {
    fn from(error: UnsupportedEncoding) -> Status {
        Status::unimplemented(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::testing::Seeded;
    use crate::status::Code;

    #[test]
    fn messages_come_back_within_the_bound_only() {
        let check = |message: &[u8]| {
            for encoding in Encoding::ALL {
                let mut out = b"before".to_vec();
                encoding.compress(message, &mut out);
                assert_eq!(&out[..6], b"before");
                let size = message.len();
                assert_eq!(encoding.decompress(&out[6..], size).unwrap(), message);
                assert_eq!(encoding.decompress(&out[6..], usize::MAX / 2).unwrap(), message);
                if size > 0 {
                    let error = encoding.decompress(&out[6..], size - 1).unwrap_err();
                    assert!(matches!(error, DecompressError::TooLarge { size_max } if size_max == size - 1));
                }
            }
        };
        check(b"");
        check(b"a");
        check(&vec![0; 100_000]);
        let mut seeded = Seeded(3);
        (0..50).for_each(|_| check(&seeded.bytes(0..5_000)));
    }

    #[test]
    fn a_bomb_is_not_inflated() {
        let mut bomb = Vec::new();
        Encoding::Gzip.compress(&vec![0; 32 << 20], &mut bomb);
        let status = Status::from(Encoding::Gzip.decompress(&bomb, 1_000).unwrap_err());
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(status.message(), "received message after decompression larger than max 1000");
    }

    #[test]
    fn what_is_not_gzip_is_corrupt() {
        let mut gzip = Vec::new();
        Encoding::Gzip.compress(b"hello hello hello", &mut gzip);
        let mut flipped = gzip.clone();
        *flipped.last_mut().unwrap() ^= 1; // in the length
        let garbage_behind = [&gzip[..], b"garbage"].concat();
        // RFC 1952 has several members be one file; of a message there is one.
        let members = gzip.repeat(2);
        for corrupt in [&b""[..], b"garbage", &gzip[..gzip.len() - 1], &flipped, &garbage_behind, &members] {
            let status = Status::from(Encoding::Gzip.decompress(corrupt, 1_000).unwrap_err());
            assert_eq!(status.code(), Code::Internal, "{corrupt:?}");
        }
    }

    #[test]
    fn accepted_encodings() {
        let check =
            |value: &str, expected: EncodingSet| assert_eq!(EncodingSet::parse(value.as_bytes()), expected);
        check("", EncodingSet::IDENTITY);
        check("gzip", EncodingSet::ALL);
        check("identity, deflate , gzip ,snappy", EncodingSet::ALL);
        check("deflate,gzipped", EncodingSet::IDENTITY);
        check(EncodingSet::ALL.value(), EncodingSet::ALL);
        check(EncodingSet::IDENTITY.value(), EncodingSet::IDENTITY);
    }

    #[test]
    fn chosen_encodings() {
        let check = |accepted: EncodingSet, value: &str, expected: Result<Encoding, &str>| {
            let chosen = accepted.choose(value.as_bytes()).map_err(Status::from);
            assert_eq!(chosen.as_ref().map_err(Status::message).copied(), expected);
        };
        check(EncodingSet::ALL, "gzip", Ok(Encoding::Gzip));
        check(EncodingSet::ALL, "identity", Ok(Encoding::Identity));
        check(EncodingSet::IDENTITY, "identity", Ok(Encoding::Identity));
        check(
            EncodingSet::IDENTITY,
            "gzip",
            Err("grpc-encoding \"gzip\" is not supported; accepted are identity"),
        );
        check(
            EncodingSet::ALL,
            "snappy",
            Err("grpc-encoding \"snappy\" is not supported; accepted are identity,gzip"),
        );
    }
}
