//! Requests of streaming calls: [`IntoStreamingRequest`].

use std::pin::Pin;

use tokio_stream::Stream;
use vocabulary::Request;

/// Converts a stream of messages, or a [`Request`] with a stream, to the request of a call.
///
/// It is implemented for exactly the types that implement tonic's trait of that name. Unlike tonic's, all streams of a
/// message type become the same type. Otherwise rustc would have to inspect the stream to prove a call's future `Send`.
/// That fails for trait objects and closures ("higher-ranked lifetime error").
pub trait IntoStreamingRequest {
    /// The messages of the stream.
    type Message;

    /// Returns the request.
    fn into_streaming_request(self) -> Request<BoxStream<Self::Message>>;
}

/// A boxed stream of requests.
type BoxStream<T> = Pin<Box<dyn Stream<Item = T> + Send>>;

impl<T: vocabulary::IntoStreamingRequest> IntoStreamingRequest for T {
    type Message = T::Message;

    fn into_streaming_request(self) -> Request<BoxStream<T::Message>> {
        vocabulary::IntoStreamingRequest::into_streaming_request(self).map(|stream| Box::pin(stream) as _)
    }
}
