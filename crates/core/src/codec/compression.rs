//! Compression of messages: which encodings are enabled, and which one the headers choose.

use std::fmt;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::Status;
use crate::compression::Encoding;
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
    pub fn name(self) -> &'static str {
        Encoding::from(self).name()
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

#[cfg_attr(
    not(any(feature = "gzip", feature = "deflate", feature = "zstd")),
    allow(unreachable_code, reason = "without encodings there is no value")
)]
impl From<CompressionEncoding> for Encoding {
    fn from(encoding: CompressionEncoding) -> Self {
        match encoding {
            #[cfg(feature = "gzip")]
            CompressionEncoding::Gzip => Self::Gzip,
            #[cfg(feature = "deflate")]
            CompressionEncoding::Deflate => Self::Deflate,
            #[cfg(feature = "zstd")]
            CompressionEncoding::Zstd => Self::Zstd,
        }
    }
}

/// Decompresses a message of at most `size_max` bytes.
///
/// # Errors
///
/// INTERNAL if it is corrupt, RESOURCE_EXHAUSTED if it would be larger.
pub(super) fn decompress(
    encoding: CompressionEncoding,
    message: &[u8],
    size_max: usize,
) -> Result<Bytes, Status> {
    Ok(Encoding::from(encoding).decompress(message, size_max)?.into())
}

#[cfg(all(test, any(feature = "gzip", feature = "deflate", feature = "zstd")))]
mod tests {
    use super::*;
    use crate::Code;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn messages_survive_within_the_limit() {
        for encoding in CompressionEncoding::ALL {
            let mut compressed = Vec::new();
            Encoding::from(*encoding).compress(&[7; 1_000], &mut compressed);
            assert!(compressed.len() < 100);
            assert_eq!(decompress(*encoding, &compressed, 1_000).unwrap(), vec![7; 1_000]);
            let code = |bytes, size_max| decompress(*encoding, bytes, size_max).unwrap_err().code();
            assert_eq!(code(&compressed, 999), Code::ResourceExhausted);
            assert_eq!(code(&compressed[1..], 1_000), Code::Internal);
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
