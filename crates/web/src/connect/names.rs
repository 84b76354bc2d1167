//! Names and flags that more than one file reads and writes.

use http::HeaderName;

/// The header of [`VERSION`].
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");

/// The only version there is.
pub(super) const VERSION: &str = "1";

/// What trailers of unary calls have before their names.
pub(super) const TRAILER: &str = "trailer-";

/// `connect-content-encoding`: of streams, whose HTTP compression is another matter.
pub(super) const STREAM_ENCODING: HeaderName = HeaderName::from_static("connect-content-encoding");

/// What stands before the codec in the content type of streams.
pub(super) const STREAM_SUBTYPE: &str = "connect+";

/// The flag of the envelope that ends an answer.
pub(super) const END_STREAM: u8 = 2;
