//! What a server's call is of: [`Called`].

use http::HeaderMap;

/// What a span of a call that no handler has begun is made from.
#[cfg_attr(not(feature = "opentelemetry"), expect(dead_code, reason = "only traces ask"))]
pub(crate) trait Called: Send + Sync {
    /// `package.Service/Method`, with a slash in front or without.
    fn path(&self) -> &str;

    /// The metadata of its request.
    fn metadata(&self) -> &HeaderMap;
}
