//! Representation of a call's messages: encoded bytes of any method, or another type.

use thalweg::Message;

use crate::call_context::CallContext;
use crate::call_outcome::Failure;

/// Makes the requests of calls and checks their responses.
pub(crate) trait Form {
    type Request: Message + Clone;
    type Response: Message + Default;
    type Source: Source<Request = Self::Request>;

    /// Returns the request of a call that sends one message, or why it cannot be made.
    fn request(&self, context: &CallContext<'_>) -> Result<Self::Request, String>;

    fn requests(&self, context: &CallContext<'_>) -> Self::Source;

    /// Returns the bytes of an encoded request.
    fn request_bytes(&self, request: &Self::Request) -> u64;

    /// Returns the bytes of an encoded response.
    fn response_bytes(response: &Self::Response) -> u64;

    /// Checks a response. Stores values needed by later steps in the context's variables.
    fn check(&self, response: &Self::Response, context: &mut CallContext<'_>) -> Result<(), Failure>;

    /// Returns whether stream responses are newly allocated and requests passed by value, as in tonic's API.
    fn is_owned(&self) -> bool {
        false
    }
}

/// Requests of one stream.
pub(crate) trait Source: Send + Unpin + 'static {
    type Request: Message + Clone;

    /// Returns the next request and its encoded bytes, or why it cannot be made. Returns `None` after the last.
    fn next(&mut self) -> Option<Result<(&Self::Request, u64), String>>;
}
