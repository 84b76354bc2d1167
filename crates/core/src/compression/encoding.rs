//! [`Encoding`]: gzip, deflate, Zstandard and Brotli, of one message at a time.

#[cfg(feature = "compression-zstd")]
use std::cell::RefCell;
use std::io;

#[cfg(feature = "compression-brotli")]
use super::brotli;
#[cfg(feature = "compression-gzip")]
use super::deflate;
#[cfg(feature = "compression-zstd")]
use super::inflate;
use crate::{Code, Status};

/// Compression of the messages in one direction of a call.
#[doc(alias = "CompressionEncoding")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// No compression.
    #[default]
    Identity,
    /// gzip (RFC 1952), with the feature `gzip`.
    #[cfg(feature = "compression-gzip")]
    Gzip,
    /// zlib (RFC 1950), which gRPC and HTTP call `deflate`, with the feature `gzip`.
    #[cfg(feature = "compression-gzip")]
    Deflate,
    /// Zstandard (RFC 8878), with the feature `zstd`.
    #[cfg(feature = "compression-zstd")]
    Zstd,
    /// Brotli (RFC 7932), `br`, with the feature `brotli`. Supported in HTTP, but not by other gRPC libraries.
    #[cfg(feature = "compression-brotli")]
    Brotli,
}

impl Encoding {
    /// All encodings that this library supports.
    pub const ALL: &[Encoding] = &[
        Encoding::Identity,
        #[cfg(feature = "compression-gzip")]
        Encoding::Gzip,
        #[cfg(feature = "compression-gzip")]
        Encoding::Deflate,
        #[cfg(feature = "compression-zstd")]
        Encoding::Zstd,
        #[cfg(feature = "compression-brotli")]
        Encoding::Brotli,
    ];

    /// Returns the value of `grpc-encoding`.
    #[inline]
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Identity => "identity",
            #[cfg(feature = "compression-gzip")]
            Encoding::Gzip => "gzip",
            #[cfg(feature = "compression-gzip")]
            Encoding::Deflate => "deflate",
            #[cfg(feature = "compression-zstd")]
            Encoding::Zstd => "zstd",
            #[cfg(feature = "compression-brotli")]
            Encoding::Brotli => "br",
        }
    }

    /// Returns the encoding of this name, if this library supports it.
    pub fn from_name(name: &[u8]) -> Option<Encoding> {
        Self::ALL.iter().copied().find(|encoding| encoding.name().as_bytes() == name)
    }

    /// Returns whether messages may be flagged as compressed: true for all but identity.
    #[inline]
    pub fn compresses(self) -> bool {
        self != Encoding::Identity
    }

    /// Appends `message` to `out`, compressed; unchanged for identity.
    pub fn compress(self, message: &[u8], out: &mut Vec<u8>) {
        match self {
            Encoding::Identity => out.extend_from_slice(message),
            #[cfg(feature = "compression-gzip")]
            Encoding::Gzip => deflate::compress_gzip(message, out),
            #[cfg(feature = "compression-gzip")]
            Encoding::Deflate => deflate::compress_zlib(message, out),
            #[cfg(feature = "compression-zstd")]
            Encoding::Zstd => compress_zstd(message, out),
            #[cfg(feature = "compression-brotli")]
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
            #[cfg(feature = "compression-gzip")]
            Encoding::Gzip => deflate::decompress_gzip(message, size_max),
            #[cfg(feature = "compression-gzip")]
            Encoding::Deflate => deflate::decompress_zlib(message, size_max),
            #[cfg(feature = "compression-zstd")]
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
            #[cfg(feature = "compression-brotli")]
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
}

#[cfg(feature = "compression-zstd")]
thread_local! {
    /// Kept for the next message of the thread.
    static ZSTD: RefCell<zstd::bulk::Compressor<'static>> = RefCell::new(
        zstd::bulk::Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL).expect("enough memory for a compressor"),
    );
}

#[cfg(feature = "compression-zstd")]
fn compress_zstd(message: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + zstd::zstd_safe::compress_bound(message.len()), 0);
    let written =
        ZSTD.with_borrow_mut(|compressor| compressor.compress_to_buffer(message, &mut out[start..]));
    out.truncate(start + written.expect("the output has room for the worst case"));
}

/// Returns the largest window that a Zstandard frame may request, as a power of two.
#[cfg(feature = "compression-zstd")]
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
    fn from(error: DecompressError) -> Self {
        let code = match error {
            DecompressError::Corrupt(_) => Code::Internal,
            DecompressError::TooLarge { .. } => Code::ResourceExhausted,
        };
        Self::local(code, error.to_string())
    }
}

#[cfg(all(test, feature = "compression-gzip"))]
mod tests {
    use super::*;
    use crate::testing::Seeded;

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
}
