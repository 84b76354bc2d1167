//! Message compression: `grpc-encoding`, `grpc-accept-encoding`, and the encodings themselves.

#[cfg(feature = "brotli")]
pub(super) mod brotli;
#[cfg(feature = "gzip")]
mod deflate;
#[cfg(any(feature = "gzip", feature = "zstd"))]
mod inflate;

#[cfg(feature = "zstd")]
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::sync::LazyLock;

use thalweg_http2::fields::{FieldList, Indexing};

use crate::status::Status;

/// Compression of the messages in one direction of a call.
#[doc(alias = "CompressionEncoding")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// No compression.
    #[default]
    Identity,
    /// gzip (RFC 1952), with the feature `gzip`.
    #[cfg(feature = "gzip")]
    Gzip,
    /// zlib (RFC 1950), which gRPC and HTTP call `deflate`, with the feature `gzip`.
    #[cfg(feature = "gzip")]
    Deflate,
    /// Zstandard (RFC 8878), with the feature `zstd`.
    #[cfg(feature = "zstd")]
    Zstd,
    /// Brotli (RFC 7932), `br`, with the feature `brotli`. Supported in HTTP, but not by other gRPC libraries.
    #[cfg(feature = "brotli")]
    Brotli,
}

impl Encoding {
    /// All encodings that this library supports.
    pub const ALL: &[Encoding] = &[
        Encoding::Identity,
        #[cfg(feature = "gzip")]
        Encoding::Gzip,
        #[cfg(feature = "gzip")]
        Encoding::Deflate,
        #[cfg(feature = "zstd")]
        Encoding::Zstd,
        #[cfg(feature = "brotli")]
        Encoding::Brotli,
    ];

    /// Returns the value of `grpc-encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Identity => "identity",
            #[cfg(feature = "gzip")]
            Encoding::Gzip => "gzip",
            #[cfg(feature = "gzip")]
            Encoding::Deflate => "deflate",
            #[cfg(feature = "zstd")]
            Encoding::Zstd => "zstd",
            #[cfg(feature = "brotli")]
            Encoding::Brotli => "br",
        }
    }

    /// Returns the encoding of this name, if this library supports it.
    pub fn from_name(name: &[u8]) -> Option<Encoding> {
        Self::ALL.iter().copied().find(|encoding| encoding.name().as_bytes() == name)
    }

    /// Returns whether messages may be flagged as compressed: true for all but identity.
    pub fn compresses(self) -> bool {
        self != Encoding::Identity
    }

    /// Appends `grpc-encoding` to the headers of a request or response. Identity is omitted.
    pub fn emit(self, fields: &mut FieldList) {
        if self.compresses() {
            fields.push(b"grpc-encoding", self.name().as_bytes(), Indexing::Insert);
        }
    }

    /// Appends `message` to `out`, compressed; unchanged for identity.
    pub fn compress(self, message: &[u8], out: &mut Vec<u8>) {
        match self {
            Encoding::Identity => out.extend_from_slice(message),
            #[cfg(feature = "gzip")]
            Encoding::Gzip => deflate::compress_gzip(message, out),
            #[cfg(feature = "gzip")]
            Encoding::Deflate => deflate::compress_zlib(message, out),
            #[cfg(feature = "zstd")]
            Encoding::Zstd => compress_zstd(message, out),
            #[cfg(feature = "brotli")]
            Encoding::Brotli => brotli::compress(message, out),
        }
    }

    /// Decompresses one message of at most `size_max` bytes.
    ///
    /// At most `size_max + 1` bytes are inflated. In addition, Zstandard's window takes at most that much, or 8 MiB,
    /// which every decoder must support (RFC 8878 §3.1.1.1.2).
    ///
    /// # Errors
    /// Returns an error if the message is corrupt or would be larger than `size_max`.
    pub fn decompress(self, message: &[u8], size_max: usize) -> Result<Vec<u8>, DecompressError> {
        // Only one member, stream or frame: a million empty ones would make each byte of a peer too expensive.
        let decompressed: io::Result<(Vec<u8>, &[u8])> = match self {
            Encoding::Identity => Ok((message.to_vec(), &[])),
            #[cfg(feature = "gzip")]
            Encoding::Gzip => deflate::decompress_gzip(message, size_max),
            #[cfg(feature = "gzip")]
            Encoding::Deflate => deflate::decompress_zlib(message, size_max),
            #[cfg(feature = "zstd")]
            Encoding::Zstd => {
                // A frame that declares too large a size is rejected before its window is allocated.
                let declared_len = zstd::zstd_safe::get_frame_content_size(message);
                if declared_len.is_ok_and(|declared_len| {
                    declared_len.is_some_and(|declared_len| declared_len > size_max as u64)
                }) {
                    return Err(DecompressError::TooLarge { size_max });
                }
                let mut decoder = zstd::stream::read::Decoder::with_buffer(message)
                    .map_err(DecompressError::Corrupt)?
                    .single_frame();
                decoder.window_log_max(window_log_max(size_max)).map_err(DecompressError::Corrupt)?;
                inflate::inflate(decoder, message.len(), size_max, zstd::stream::read::Decoder::finish)
            }
            #[cfg(feature = "brotli")]
            Encoding::Brotli => brotli::decompress(message, size_max),
        };
        let (inflated, rest) = decompressed.map_err(DecompressError::Corrupt)?;
        if inflated.len() > size_max {
            return Err(DecompressError::TooLarge { size_max });
        }
        if !rest.is_empty() {
            return Err(DecompressError::Corrupt(io::Error::other("trailing bytes")));
        }
        Ok(inflated)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

#[cfg(feature = "zstd")]
thread_local! {
    /// Kept for the next message of the thread.
    static ZSTD: RefCell<zstd::bulk::Compressor<'static>> = RefCell::new(
        zstd::bulk::Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL).expect("enough memory for a compressor"),
    );
}

#[cfg(feature = "zstd")]
fn compress_zstd(message: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + zstd::zstd_safe::compress_bound(message.len()), 0);
    let written =
        ZSTD.with_borrow_mut(|compressor| compressor.compress_to_buffer(message, &mut out[start..]));
    out.truncate(start + written.expect("the output has room for the worst case"));
}

/// Returns the largest window that a Zstandard frame may request, as a power of two.
#[cfg(feature = "zstd")]
pub(super) fn window_log_max(size_max: usize) -> u32 {
    size_max.checked_next_power_of_two().map_or(usize::BITS, usize::ilog2).clamp(23, 31)
}

/// Error of decompressing a message.
#[derive(Debug, thiserror::Error)]
pub enum DecompressError {
    /// The message is not valid for its `grpc-encoding`.
    #[error("the compressed message is corrupt: {0}")]
    Corrupt(io::Error),
    /// The message would be larger than is accepted.
    #[error(
        "received message after decompression larger than max {size_max}: see the receiver's max_decoding_message_size"
    )]
    TooLarge {
        /// Maximum accepted size, in bytes.
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

/// A set of encodings accepted by one side of a call. It always contains identity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EncodingSet(u8);

impl EncodingSet {
    /// No compression.
    pub const IDENTITY: EncodingSet = EncodingSet(1 << Encoding::Identity as u8);

    /// All encodings that this library supports.
    pub const ALL: EncodingSet = EncodingSet((1 << Encoding::ALL.len()) - 1);

    /// Returns the set with `encoding` added.
    pub fn with(self, encoding: Encoding) -> EncodingSet {
        EncodingSet(self.0 | encoding.bit())
    }

    /// Returns whether the set contains `encoding`.
    pub fn contains(self, encoding: Encoding) -> bool {
        self.0 & encoding.bit() != 0
    }

    /// Parses `grpc-accept-encoding`: comma-separated names. Unknown ones are ignored.
    pub fn parse(value: &[u8]) -> EncodingSet {
        let known = |name: &[u8]| Encoding::from_name(name.trim_ascii());
        value.split(|byte| *byte == b',').filter_map(known).fold(EncodingSet::IDENTITY, EncodingSet::with)
    }

    /// Returns the value of `grpc-accept-encoding`.
    pub fn value(self) -> &'static str {
        static VALUES: LazyLock<[String; EncodingSet::COUNT]> = LazyLock::new(|| {
            std::array::from_fn(|index| {
                let set = EncodingSet((index << 1 | 1) as u8);
                let members = Encoding::ALL.iter().filter(|encoding| set.contains(**encoding));
                members.map(|encoding| encoding.name()).collect::<Vec<_>>().join(",")
            })
        });
        &VALUES[self.index()]
    }

    /// Number of possible sets.
    pub(crate) const COUNT: usize = 1 << (Encoding::ALL.len() - 1);

    /// Returns a unique number of the set, below [`COUNT`](Self::COUNT).
    pub(crate) fn index(self) -> usize {
        usize::from(self.0 >> 1)
    }

    /// Parses `grpc-encoding`, for a side that accepts this set.
    ///
    /// # Errors
    ///
    /// An encoding outside the set. The call must end with UNIMPLEMENTED; a server names the set in
    /// `grpc-accept-encoding` of its response.
    pub fn choose(self, grpc_encoding: &[u8]) -> Result<Encoding, UnsupportedEncoding> {
        let known = Encoding::from_name(grpc_encoding).filter(|encoding| self.contains(*encoding));
        known.ok_or_else(|| UnsupportedEncoding {
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
        let members = Encoding::ALL.iter().filter(|encoding| self.contains(**encoding));
        f.debug_set().entries(members).finish()
    }
}

/// The peer uses an encoding that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("grpc-encoding {name:?} is not supported; accepted are {}", .accepted.value())]
pub struct UnsupportedEncoding {
    /// The peer's `grpc-encoding`.
    pub name: String,
    /// The accepted encodings.
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
    fn messages_decompress_only_within_the_bound() {
        let check = |message: &[u8]| {
            for encoding in Encoding::ALL {
                let mut out = b"before".to_vec();
                encoding.compress(message, &mut out);
                assert_eq!(&out[..6], b"before");
                let size = message.len();
                assert_eq!(encoding.decompress(&out[6..], size).unwrap(), message, "{encoding:?}");
                assert_eq!(encoding.decompress(&out[6..], usize::MAX).unwrap(), message, "{encoding:?}");
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
        check(&seeded.bytes(3_000_000..3_000_001));
    }

    /// Returns all encodings except identity.
    fn compressing() -> impl Iterator<Item = Encoding> {
        Encoding::ALL.iter().copied().filter(|encoding| encoding.compresses())
    }

    #[test]
    fn decompression_bomb_is_refused() {
        for encoding in compressing() {
            let mut bomb = Vec::new();
            encoding.compress(&vec![0; 32 << 20], &mut bomb);
            assert!(bomb.len() < 64 << 10, "{encoding:?} makes {} bytes of it", bomb.len());
            for size_max in [0, 1_000, 4 << 20] {
                let status = Status::from(encoding.decompress(&bomb, size_max).unwrap_err());
                let expected = format!(
                    "received message after decompression larger than max {size_max}: see the receiver's \
                     max_decoding_message_size"
                );
                assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, &*expected));
            }
        }
    }

    #[test]
    fn invalid_compressed_message_is_corrupt() {
        for encoding in compressing() {
            let mut whole = Vec::new();
            encoding.compress(b"hello hello hello", &mut whole);
            let garbage_behind = [&whole[..], b"garbage"].concat();
            // A file may have several members or frames; a message has only one.
            let members = whole.repeat(2);
            for corrupt in [&b""[..], b"garbage", &whole[..whole.len() - 1], &garbage_behind, &members] {
                let outcome = encoding.decompress(corrupt, 1_000);
                let status = Status::from(outcome.expect_err(&format!("{encoding:?} of {corrupt:?}")));
                assert_eq!(status.code(), Code::Internal, "{corrupt:?}");
            }
        }
        let mut gzip = Vec::new();
        Encoding::Gzip.compress(b"hello hello hello", &mut gzip);
        *gzip.last_mut().unwrap() ^= 1; // in the length
        assert_eq!(Status::from(Encoding::Gzip.decompress(&gzip, 1_000).unwrap_err()).code(), Code::Internal);
    }

    #[test]
    fn accepted_encodings() {
        let gzip = EncodingSet::IDENTITY.with(Encoding::Gzip);
        let check =
            |value: &str, expected: EncodingSet| assert_eq!(EncodingSet::parse(value.as_bytes()), expected);
        check("", EncodingSet::IDENTITY);
        check("gzip", gzip);
        check("identity, lz4 , gzip ,snappy", gzip);
        check("identity, deflate , gzip ,snappy", gzip.with(Encoding::Deflate));
        check("lz4,gzipped", EncodingSet::IDENTITY);
        for bits in 0..EncodingSet::COUNT {
            let set = EncodingSet((bits << 1 | 1) as u8);
            assert_eq!(set.index(), bits);
            check(set.value(), set);
        }
        assert_eq!(EncodingSet::ALL.index(), EncodingSet::COUNT - 1);
    }

    #[test]
    fn chosen_encodings() {
        let check = |accepted: EncodingSet, value: &str, expected: Result<Encoding, &str>| {
            let chosen = accepted.choose(value.as_bytes()).map_err(Status::from);
            assert_eq!(chosen.as_ref().map_err(Status::message).copied(), expected);
        };
        for encoding in Encoding::ALL {
            check(EncodingSet::ALL, encoding.name(), Ok(*encoding));
        }
        check(
            EncodingSet::IDENTITY,
            "gzip",
            Err("grpc-encoding \"gzip\" is not supported; accepted are identity"),
        );
        check(
            EncodingSet::IDENTITY.with(Encoding::Gzip).with(Encoding::Deflate),
            "snappy",
            Err("grpc-encoding \"snappy\" is not supported; accepted are identity,gzip,deflate"),
        );
    }
}
