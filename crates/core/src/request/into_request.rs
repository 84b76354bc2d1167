//! Arguments of generated clients.

use futures_core::Stream;

use super::value::Request;

/// A message, or a [`Request`] with one.
///
/// ```
/// use thalweg_core::{IntoRequest, Request};
///
/// fn call(request: impl IntoRequest<u32>) -> u32 {
///     request.into_request().into_inner()
/// }
///
/// assert_eq!(call(1), 1);
/// assert_eq!(call(Request::new(1)), 1);
/// ```
pub trait IntoRequest<T>: sealed::Sealed {
    /// Returns the request.
    fn into_request(self) -> Request<T>;
}

/// A stream of messages, or a [`Request`] with one.
pub trait IntoStreamingRequest: sealed::Sealed {
    /// The stream.
    type Stream: Stream<Item = Self::Message> + Send + 'static;
    /// Its messages.
    type Message;

    /// Returns the request.
    fn into_streaming_request(self) -> Request<Self::Stream>;
}

impl<T> IntoRequest<T> for T {
    fn into_request(self) -> Request<Self> {
        Request::new(self)
    }
}

impl<T> IntoRequest<T> for Request<T> {
    fn into_request(self) -> Self {
        self
    }
}

impl<T: Stream + Send + 'static> IntoStreamingRequest for T {
    type Stream = T;
    type Message = T::Item;

    fn into_streaming_request(self) -> Request<Self> {
        Request::new(self)
    }
}

impl<T: Stream + Send + 'static> IntoStreamingRequest for Request<T> {
    type Stream = T;
    type Message = T::Item;

    fn into_streaming_request(self) -> Self {
        self
    }
}

impl<T> sealed::Sealed for T {}

mod sealed {
    pub trait Sealed {}
}
