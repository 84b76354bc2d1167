//! Requests of streaming calls: [`IntoStreamingRequest`].

use std::pin::Pin;

use tokio_stream::Stream;
use tonic::Request;

/// Converts a stream of messages to the request of a call: a stream itself, or a [`Request`] with one.
///
/// It is implemented for all types that implement tonic's trait of that name, and for no others. Unlike there, the
/// stream of the request has the same type for all streams of a message: rustc then need not look into the stream to
/// see that a call's future is `Send`, which fails for trait objects and closures ("higher-ranked lifetime error").
pub trait IntoStreamingRequest {
    /// The messages of the stream.
    type Message;

    /// Returns the request.
    fn into_streaming_request(self) -> Request<BoxStream<Self::Message>>;
}

/// The requests of a call.
type BoxStream<T> = Pin<Box<dyn Stream<Item = T> + Send>>;

impl<T: tonic::IntoStreamingRequest> IntoStreamingRequest for T {
    type Message = T::Message;

    fn into_streaming_request(self) -> Request<BoxStream<T::Message>> {
        tonic::IntoStreamingRequest::into_streaming_request(self).map(|stream| Box::pin(stream) as _)
    }
}
