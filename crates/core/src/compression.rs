//! Encodings of compressed bytes: of one message within a limit, and of bodies that arrive in pieces.

#[cfg(feature = "compression-gzip")]
mod bodies;
#[cfg(feature = "compression-brotli")]
mod brotli;
#[cfg(feature = "compression-gzip")]
mod deflate;
mod encoding;
#[cfg(any(feature = "compression-gzip", feature = "compression-zstd"))]
mod inflate;

#[cfg(feature = "compression-gzip")]
pub use self::bodies::{BodyDecoder, BodyEncoder};
pub use self::encoding::{DecompressError, Encoding};
