//! Names and flags shared by several files.

use http::HeaderName;

pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");

/// The only version.
pub(super) const VERSION: &str = "1";

/// Prefix of trailers in the headers of unary calls.
pub(super) const TRAILER: &str = "trailer-";

/// `connect-content-encoding`: for streams, since HTTP compression is separate.
pub(super) const STREAM_ENCODING: HeaderName = HeaderName::from_static("connect-content-encoding");

/// Prefix of the codec in the content type of streams.
pub(super) const STREAM_SUBTYPE: &str = "connect+";

/// Flag of the envelope that ends a response.
pub(super) const END_STREAM: u8 = 2;
