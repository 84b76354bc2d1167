//! Path and metadata of a call that has no span yet: [`SpanSource`].

use http::HeaderMap;

/// Source of the span of a call whose handler has not started.
#[cfg_attr(not(feature = "opentelemetry"), expect(dead_code, reason = "used by traces only"))]
pub(crate) trait SpanSource: Send + Sync {
    /// Returns `package.Service/Method`, with or without a leading slash.
    fn path(&self) -> &str;

    /// Returns the metadata of the request.
    fn metadata(&self) -> &HeaderMap;
}
