//! Compression of messages: its names, what is enabled, and the encodings themselves.

use std::fmt;
#[cfg(any(feature = "gzip", feature = "deflate", feature = "zstd"))]
use std::io::Read;
#[cfg(any(feature = "gzip", feature = "deflate"))]
use std::io::Write;

#[cfg(any(feature = "gzip", feature = "deflate"))]
use bytes::BufMut;
use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::Status;
use crate::metadata::MetadataValue;

/// The field with the encoding of the messages that follow.
pub const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
/// The field with the encodings that its sender accepts.
pub const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// An encoding of compressed messages; each needs the feature of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressionEncoding {
    /// gzip (RFC 1952).
    #[cfg(feature = "gzip")]
    Gzip,
    /// zlib (RFC 1950), which gRPC and HTTP call `deflate`.
    #[cfg(feature = "deflate")]
    Deflate,
    /// Zstandard (RFC 8878).
    #[cfg(feature = "zstd")]
    Zstd,
}

impl CompressionEncoding {
    /// All encodings that are compiled in.
    pub const ALL: &[Self] = &[
        #[cfg(feature = "gzip")]
        Self::Gzip,
        #[cfg(feature = "deflate")]
        Self::Deflate,
        #[cfg(feature = "zstd")]
        Self::Zstd,
    ];

    /// Returns the name in header fields.
    #[cfg_attr(
        not(any(feature = "gzip", feature = "deflate", feature = "zstd")),
        allow(unreachable_code, reason = "without encodings there is no value")
    )]
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "gzip")]
            Self::Gzip => "gzip",
            #[cfg(feature = "deflate")]
            Self::Deflate => "deflate",
            #[cfg(feature = "zstd")]
            Self::Zstd => "zstd",
        }
    }

    /// Returns the first encoding that the sender of these headers accepts, and that is enabled.
    #[doc(hidden)]
    pub fn from_accept_encoding_header(
        headers: &HeaderMap,
        enabled: EnabledCompressionEncodings,
    ) -> Option<Self> {
        let names = headers.get(ACCEPT_ENCODING)?.to_str().ok()?;
        names.split(',').find_map(|name| enabled.named(name.trim().as_bytes()))
    }

    /// Returns the encoding of the messages after these headers, if they are compressed.
    ///
    /// # Errors
    ///
    /// UNIMPLEMENTED, with `grpc-accept-encoding`, if it is not enabled.
    #[doc(hidden)]
    pub fn from_encoding_header(
        headers: &HeaderMap,
        enabled: EnabledCompressionEncodings,
    ) -> Result<Option<Self>, Status> {
        let Some(name) = headers.get(ENCODING).map(HeaderValue::as_bytes).filter(|name| *name != b"identity")
        else {
            return Ok(None);
        };
        if let Some(encoding) = enabled.named(name) {
            return Ok(Some(encoding));
        }
        let name = String::from_utf8_lossy(name);
        let mut status = Status::unimplemented(format!("grpc-encoding {name:?} is not enabled here"));
        let accepted = enabled.accept_encoding().unwrap_or(HeaderValue::from_static("identity"));
        status.metadata_mut().insert("grpc-accept-encoding", MetadataValue::of(accepted));
        Err(status)
    }
}

impl fmt::Display for CompressionEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The encodings that one side of a call has enabled, in the order in which it did.
#[derive(Clone, Copy, Debug, Default)]
pub struct EnabledCompressionEncodings {
    encodings: [Option<CompressionEncoding>; 3],
}

impl EnabledCompressionEncodings {
    /// Enables an encoding.
    pub fn enable(&mut self, encoding: CompressionEncoding) {
        for place in &mut self.encodings {
            match place {
                Some(enabled) if *enabled == encoding => return,
                Some(_) => {}
                None => {
                    *place = Some(encoding);
                    return;
                }
            }
        }
    }

    /// Removes the encoding that was enabled last.
    pub fn pop(&mut self) -> Option<CompressionEncoding> {
        self.encodings.iter_mut().rev().find_map(Option::take)
    }

    /// Returns whether an encoding is enabled.
    pub fn is_enabled(&self, encoding: CompressionEncoding) -> bool {
        self.encodings.contains(&Some(encoding))
    }

    /// Returns whether none is enabled.
    pub fn is_empty(&self) -> bool {
        self.encodings.iter().all(Option::is_none)
    }

    /// Returns the value of `grpc-accept-encoding`, unless none is enabled.
    #[doc(hidden)]
    pub fn accept_encoding(self) -> Option<HeaderValue> {
        let mut names: Vec<&str> = self.encodings.iter().flatten().map(|encoding| encoding.name()).collect();
        if names.is_empty() {
            return None;
        }
        names.push("identity");
        HeaderValue::try_from(names.join(",")).ok()
    }

    fn named(self, name: &[u8]) -> Option<CompressionEncoding> {
        self.encodings.iter().flatten().copied().find(|encoding| encoding.name().as_bytes() == name)
    }
}

/// Whether the only message of a response is sent without compression.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SingleMessageCompressionOverride {
    /// The server's settings apply.
    #[default]
    Inherit,
    /// Never compressed.
    Disable,
}

/// Appends a compressed message to `out`.
#[cfg_attr(
    not(any(feature = "gzip", feature = "deflate", feature = "zstd")),
    allow(
        unused_variables,
        unreachable_code,
        clippy::unnecessary_wraps,
        reason = "without encodings there is no value"
    )
)]
pub(super) fn compress(
    encoding: CompressionEncoding,
    message: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Status> {
    match encoding {
        #[cfg(feature = "gzip")]
        CompressionEncoding::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(out.writer(), flate2::Compression::default());
            encoder.write_all(message).and_then(|()| encoder.finish().map(drop)).map_err(failed)
        }
        #[cfg(feature = "deflate")]
        CompressionEncoding::Deflate => {
            let mut encoder = flate2::write::ZlibEncoder::new(out.writer(), flate2::Compression::default());
            encoder.write_all(message).and_then(|()| encoder.finish().map(drop)).map_err(failed)
        }
        #[cfg(feature = "zstd")]
        CompressionEncoding::Zstd => {
            let compressed =
                zstd::bulk::compress(message, zstd::DEFAULT_COMPRESSION_LEVEL).map_err(failed)?;
            out.extend_from_slice(&compressed);
            Ok(())
        }
    }
}

#[cfg(any(feature = "gzip", feature = "deflate", feature = "zstd"))]
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn failed(error: std::io::Error) -> Status {
    Status::internal(format!("cannot compress the message: {error}"))
}

/// Decompresses a message of at most `size_max` bytes. No more than one byte beyond that is inflated.
///
/// # Errors
///
/// INTERNAL if it is corrupt, RESOURCE_EXHAUSTED if it would be larger.
#[cfg_attr(
    not(any(feature = "gzip", feature = "deflate", feature = "zstd")),
    allow(unused_variables, unreachable_code, reason = "without encodings there is no value")
)]
pub(super) fn decompress(
    encoding: CompressionEncoding,
    message: &[u8],
    size_max: usize,
) -> Result<Bytes, Status> {
    match encoding {
        #[cfg(feature = "gzip")]
        CompressionEncoding::Gzip => {
            inflate(flate2::bufread::GzDecoder::new(message), message.len(), size_max, |decoder| {
                decoder.into_inner().is_empty()
            })
        }
        #[cfg(feature = "deflate")]
        CompressionEncoding::Deflate => {
            // The decoder takes a stream that ends before its first block for an empty one.
            inflate(flate2::bufread::ZlibDecoder::new(message), message.len(), size_max, |decoder| {
                decoder.total_in() == message.len() as u64
            })
        }
        #[cfg(feature = "zstd")]
        CompressionEncoding::Zstd => {
            // A frame that declares too large a size is refused before its window is allocated.
            if matches!(zstd::zstd_safe::get_frame_content_size(message), Ok(Some(len)) if len > size_max as u64)
            {
                return Err(too_large(size_max));
            }
            let mut decoder =
                zstd::stream::read::Decoder::with_buffer(message).map_err(corrupt)?.single_frame();
            decoder.window_log_max(window_log_max(size_max)).map_err(corrupt)?;
            inflate(decoder.by_ref(), message.len(), size_max, |_| true)
                .and_then(|inflated| if decoder.finish().is_empty() { Ok(inflated) } else { Err(trailing()) })
        }
    }
}

/// Returns the largest window that a Zstandard frame may request, as a power of two: `size_max`, but at least 8 MiB,
/// which every decoder must support (RFC 8878 §3.1.1.1.2).
#[cfg(feature = "zstd")]
fn window_log_max(size_max: usize) -> u32 {
    size_max.checked_next_power_of_two().map_or(usize::BITS, usize::ilog2).clamp(23, 31)
}

#[cfg(any(feature = "gzip", feature = "deflate", feature = "zstd"))]
fn inflate<D: Read>(
    mut decoder: D,
    len: usize,
    size_max: usize,
    is_at_end: impl FnOnce(D) -> bool,
) -> Result<Bytes, Status> {
    // An estimate, limited by what has arrived: text shrinks to about a third.
    let mut inflated = Vec::with_capacity(len.saturating_mul(3).min(size_max));
    let limit = (size_max as u64).saturating_add(1);
    decoder.by_ref().take(limit).read_to_end(&mut inflated).map_err(corrupt)?;
    if inflated.len() > size_max {
        return Err(too_large(size_max));
    }
    // Only one member, stream or frame: a million empty ones would make each byte of a peer too expensive.
    if is_at_end(decoder) { Ok(inflated.into()) } else { Err(trailing()) }
}

#[cfg(any(feature = "gzip", feature = "deflate", feature = "zstd"))]
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn corrupt(error: std::io::Error) -> Status {
    Status::internal(format!("the compressed message is corrupt: {error}"))
}

#[cfg(any(feature = "gzip", feature = "deflate", feature = "zstd"))]
fn trailing() -> Status {
    Status::internal("the compressed message is corrupt: trailing bytes")
}

#[cfg(any(feature = "gzip", feature = "deflate", feature = "zstd"))]
fn too_large(size_max: usize) -> Status {
    Status::resource_exhausted(format!(
        "the message is larger than {size_max} bytes, the maximum, after decompression"
    ))
}

#[cfg(all(test, any(feature = "gzip", feature = "deflate", feature = "zstd")))]
mod tests {
    use super::*;
    use crate::Code;

    fn compressed(encoding: CompressionEncoding, message: &[u8]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        compress(encoding, message, &mut out).unwrap();
        out.split_off(6)
    }

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn messages_survive() {
        for encoding in CompressionEncoding::ALL {
            for message in [&b""[..], b"a", &vec![7; 100_000]] {
                let bytes = compressed(*encoding, message);
                assert_eq!(decompress(*encoding, &bytes, message.len()).unwrap(), message);
                assert!(message.len() < 1_000 || bytes.len() < message.len() / 10);
            }
        }
    }

    #[test]
    fn large_messages_are_refused() {
        for encoding in CompressionEncoding::ALL {
            let bytes = compressed(*encoding, &[7; 1_000]);
            let status = decompress(*encoding, &bytes, 999).unwrap_err();
            assert_eq!(status.code(), Code::ResourceExhausted, "{encoding}");
        }
    }

    #[test]
    fn corrupt_messages_are_refused() {
        for encoding in CompressionEncoding::ALL {
            let check = |bytes: &[u8]| {
                let status = decompress(*encoding, bytes, 10_000).unwrap_err();
                assert_eq!(status.code(), Code::Internal, "{encoding}: {bytes:?}");
            };
            let bytes = compressed(*encoding, b"some text");
            check(b"neither of them");
            check(&bytes[..bytes.len() - 1]);
            check(&[&bytes[..], b"x"].concat());
            check(&[&bytes[..], &bytes[..]].concat());
        }
    }

    #[test]
    fn enabled_encodings_keep_their_order() {
        let mut enabled = EnabledCompressionEncodings::default();
        assert!(enabled.is_empty() && enabled.accept_encoding().is_none() && enabled.pop().is_none());
        for encoding in CompressionEncoding::ALL.iter().rev().chain(CompressionEncoding::ALL) {
            enabled.enable(*encoding);
        }
        let names: Vec<_> = CompressionEncoding::ALL.iter().rev().map(ToString::to_string).collect();
        assert_eq!(enabled.accept_encoding().unwrap(), format!("{},identity", names.join(",")));
        assert_eq!(enabled.pop().as_ref(), CompressionEncoding::ALL.first());
        assert!(!enabled.is_enabled(CompressionEncoding::ALL[0]));
    }

    #[test]
    fn encoding_is_chosen_from_headers() {
        let [encoding, ..] = CompressionEncoding::ALL else { unreachable!() };
        let mut enabled = EnabledCompressionEncodings::default();
        enabled.enable(*encoding);
        let accepted = |value| {
            CompressionEncoding::from_accept_encoding_header(&headers(ACCEPT_ENCODING, value), enabled)
        };
        let list: &'static str = format!("br, {encoding} ,identity").leak();
        assert_eq!((accepted(list), accepted("br,identity"), accepted("")), (Some(*encoding), None, None));
        assert_eq!(CompressionEncoding::from_accept_encoding_header(&HeaderMap::new(), enabled), None);

        let used = |value| CompressionEncoding::from_encoding_header(&headers(ENCODING, value), enabled);
        assert_eq!((used(encoding.name()).unwrap(), used("identity").unwrap()), (Some(*encoding), None));
        assert_eq!(CompressionEncoding::from_encoding_header(&HeaderMap::new(), enabled).unwrap(), None);
        let status = used("br").unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented);
        let accepted = format!("{encoding},identity");
        assert_eq!(status.metadata().get("grpc-accept-encoding").unwrap(), &accepted);
        let none = EnabledCompressionEncodings::default();
        let status = CompressionEncoding::from_encoding_header(&headers(ENCODING, "br"), none).unwrap_err();
        assert_eq!(status.metadata().get("grpc-accept-encoding").unwrap(), "identity");
    }
}
