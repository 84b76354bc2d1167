//! The form that a call's messages have: encoded bytes of any method, or another type.

use thalweg::Message;

use crate::turn::Turn;
use crate::went::Failure;

/// Makes the requests of calls and checks their responses.
pub(crate) trait Form {
    type Request: Message + Clone;
    type Response: Message + Default;
    type Source: Source<Request = Self::Request>;

    /// The request of a call that sends one message, or why it cannot be made.
    fn request(&self, turn: &Turn<'_>) -> Result<Self::Request, String>;

    /// The requests of a stream.
    fn requests(&self, turn: &Turn<'_>) -> Self::Source;

    /// Bytes of an encoded request.
    fn request_bytes(&self, request: &Self::Request) -> u64;

    /// Bytes of an encoded response.
    fn response_bytes(response: &Self::Response) -> u64;

    /// Checks a response. What later steps need of it goes into the turn's variables.
    fn check(&self, response: &Self::Response, turn: &mut Turn<'_>) -> Result<(), Failure>;

    /// Responses of streams are allocated anew, and requests are given away, as in tonic's API.
    fn is_owned(&self) -> bool {
        false
    }
}

/// The requests of one stream.
pub(crate) trait Source: Send + Unpin + 'static {
    type Request: Message + Clone;

    /// Returns the next request and its encoded bytes, or why it cannot be made. `None` behind the last.
    fn next(&mut self) -> Option<Result<(&Self::Request, u64), String>>;
}
