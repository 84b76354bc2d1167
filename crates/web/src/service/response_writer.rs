//! Differences between the enveloped protocols: [`ResponseWriter`].

use http::{HeaderMap, Response};
use thalweg_engine::Status;

use crate::body::Body;

/// Writes the response to one request.
pub(super) trait ResponseWriter: Send + Sync + Unpin + 'static {
    /// Returns the response headers.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the metadata is too large.
    fn head(&self, metadata: &HeaderMap) -> Result<Response<()>, Status>;

    /// Appends a message to `out`.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the message exceeds the range of the length prefix.
    fn message(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Status>;

    /// Appends the end of the response to `out`: the trailing metadata of a success, or the status of a failure.
    /// Returns HTTP trailers if it belongs there.
    fn end(&self, outcome: Result<&HeaderMap, &Status>, out: &mut Vec<u8>) -> Option<HeaderMap>;

    /// Returns the complete response of a call that failed before its response started.
    fn failure(&self, status: &Status) -> Response<Body>;
}
