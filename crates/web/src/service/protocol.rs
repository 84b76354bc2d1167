//! What protocols with envelopes do differently: [`Protocol`].

use http::{HeaderMap, Response};
use thalweg_engine::Status;

use crate::body::Body;

/// Writes the answer to one request.
pub(super) trait Protocol: Send + Sync + Unpin + 'static {
    /// The head of an answer.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED, if the metadata is too large.
    fn head(&self, metadata: &HeaderMap) -> Result<Response<()>, Status>;

    /// Appends a message to `out`.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED, if it is longer than a prefix can say.
    fn message(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Status>;

    /// Appends what ends the answer to `out`: the trailing metadata of a success, or the status of a failure. The
    /// trailers of HTTP, if it is in those.
    fn end(&self, outcome: Result<&HeaderMap, &Status>, out: &mut Vec<u8>) -> Option<HeaderMap>;

    /// The whole answer of a call that failed before anything was said of it.
    fn failure(&self, status: &Status) -> Response<Body>;
}
