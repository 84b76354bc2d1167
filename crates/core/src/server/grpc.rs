//! [`Grpc`]: typed handling of HTTP requests.

use std::fmt;
use std::pin::pin;

use http::header::{CONTENT_TYPE, HeaderValue};
use tokio_stream::Stream;

use super::services::{ClientStreamingService, ServerStreamingService, StreamingService, UnaryService};
use crate::body::Body;
use crate::codec::{
    Codec, CompressionEncoding, ENCODING, EnabledCompressionEncodings, EncodeBody,
    SingleMessageCompressionOverride,
};
use crate::error::BoxError;
use crate::metadata::GRPC_CONTENT_TYPE;
use crate::{Request, Response, Status, Streaming};

/// Handles the calls of one method; a codec encodes and decodes the messages.
pub struct Grpc<T> {
    codec: T,
    accepts: EnabledCompressionEncodings,
    sends: EnabledCompressionEncodings,
    max_decoding_message_size: Option<usize>,
    max_encoding_message_size: Option<usize>,
}

impl<T: Codec> Grpc<T> {
    /// Creates a handler for messages of this codec.
    pub fn new(codec: T) -> Self {
        Self {
            codec,
            accepts: EnabledCompressionEncodings::default(),
            sends: EnabledCompressionEncodings::default(),
            max_decoding_message_size: None,
            max_encoding_message_size: None,
        }
    }

    /// Accepts requests compressed with `encoding`; none by default.
    #[must_use]
    pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
        self.accepts.enable(encoding);
        self
    }

    /// Compresses responses with `encoding` for clients that accept it; off by default.
    #[must_use]
    pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
        self.sends.enable(encoding);
        self
    }

    /// Sets the maximum size of a received message, in bytes; 4 MiB by default.
    #[must_use]
    pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
        self.max_decoding_message_size = Some(limit);
        self
    }

    /// Sets the maximum size of a sent message, in bytes; unlimited by default.
    #[must_use]
    pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
        self.max_encoding_message_size = Some(limit);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub fn apply_compression_config(
        mut self,
        accept_encodings: EnabledCompressionEncodings,
        send_encodings: EnabledCompressionEncodings,
    ) -> Self {
        for (enabled, mut added) in [(&mut self.accepts, accept_encodings), (&mut self.sends, send_encodings)]
        {
            while let Some(encoding) = added.pop() {
                enabled.enable(encoding);
            }
        }
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub fn apply_max_message_size_config(
        self,
        max_decoding_message_size: Option<usize>,
        max_encoding_message_size: Option<usize>,
    ) -> Self {
        Self {
            max_decoding_message_size: max_decoding_message_size.or(self.max_decoding_message_size),
            max_encoding_message_size: max_encoding_message_size.or(self.max_encoding_message_size),
            ..self
        }
    }

    /// Handles a call of a unary method.
    pub async fn unary<S, B>(&mut self, mut service: S, request: http::Request<B>) -> http::Response<Body>
    where
        S: UnaryService<T::Decode, Response = T::Encode>,
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError> + Send,
    {
        let encoding = self.response_encoding(&request);
        let request = match self.only_message(request).await {
            Ok(request) => request,
            Err(status) => return status.into_http(),
        };
        let response = service.call(request).await;
        self.single_response(response, encoding)
    }

    /// Handles a call of a server-streaming method.
    pub async fn server_streaming<S, B>(
        &mut self,
        mut service: S,
        request: http::Request<B>,
    ) -> http::Response<Body>
    where
        S: ServerStreamingService<T::Decode, Response = T::Encode>,
        S::ResponseStream: Send + 'static,
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError> + Send,
    {
        let encoding = self.response_encoding(&request);
        let request = match self.only_message(request).await {
            Ok(request) => request,
            Err(status) => return status.into_http(),
        };
        let response = service.call(request).await;
        self.response(response, encoding, SingleMessageCompressionOverride::Inherit)
    }

    /// Handles a call of a client-streaming method.
    pub async fn client_streaming<S, B>(
        &mut self,
        mut service: S,
        request: http::Request<B>,
    ) -> http::Response<Body>
    where
        S: ClientStreamingService<T::Decode, Response = T::Encode>,
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError> + Send + 'static,
    {
        let encoding = self.response_encoding(&request);
        let request = match self.messages(request) {
            Ok(request) => request,
            Err(status) => return status.into_http(),
        };
        let response = service.call(request).await;
        self.single_response(response, encoding)
    }

    /// Handles a call of a bidirectional method.
    pub async fn streaming<S, B>(&mut self, mut service: S, request: http::Request<B>) -> http::Response<Body>
    where
        S: StreamingService<T::Decode, Response = T::Encode> + Send,
        S::ResponseStream: Send + 'static,
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError> + Send,
    {
        let encoding = self.response_encoding(&request);
        let request = match self.messages(request) {
            Ok(request) => request,
            Err(status) => return status.into_http(),
        };
        let response = service.call(request).await;
        self.response(response, encoding, SingleMessageCompressionOverride::Inherit)
    }

    fn response_encoding<B>(&self, request: &http::Request<B>) -> Option<CompressionEncoding> {
        CompressionEncoding::from_accept_encoding_header(request.headers(), self.sends)
    }

    /// Returns a request with its messages.
    fn messages<B>(&mut self, request: http::Request<B>) -> Result<Request<Streaming<T::Decode>>, Status>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let encoding = CompressionEncoding::from_encoding_header(request.headers(), self.accepts)?;
        let (decoder, size_max) = (self.codec.decoder(), self.max_decoding_message_size);
        Ok(Request::from_http(request.map(|body| Streaming::new_request(decoder, body, encoding, size_max))))
    }

    /// Returns a request with its only message. Trailers become metadata.
    async fn only_message<B>(&mut self, request: http::Request<B>) -> Result<Request<T::Decode>, Status>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (mut metadata, extensions, messages) = self.messages(request)?.into_parts();
        let mut messages = pin!(messages);
        let message =
            messages.message().await?.ok_or_else(|| Status::internal("the request has no message"))?;
        if let Some(trailers) = messages.trailers().await? {
            metadata.merge(trailers);
        }
        Ok(Request::from_parts(metadata, extensions, message))
    }

    fn single_response(
        &mut self,
        response: Result<Response<T::Encode>, Status>,
        encoding: Option<CompressionEncoding>,
    ) -> http::Response<Body> {
        let compression = response.as_ref().ok().and_then(|response| response.extensions().get().copied());
        let response = response.map(|response| response.map(|message| tokio_stream::once(Ok(message))));
        self.response(response, encoding, compression.unwrap_or_default())
    }

    fn response<M>(
        &mut self,
        response: Result<Response<M>, Status>,
        encoding: Option<CompressionEncoding>,
        compression: SingleMessageCompressionOverride,
    ) -> http::Response<Body>
    where
        M: Stream<Item = Result<T::Encode, Status>> + Send + 'static,
    {
        let response = match response {
            Ok(response) => response,
            Err(status) => return status.into_http(),
        };
        let mut response = response.into_http();
        response.headers_mut().insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
        if let Some(encoding) = encoding {
            response.headers_mut().insert(ENCODING, HeaderValue::from_static(encoding.name()));
        }
        let (encoder, size_max) = (self.codec.encoder(), self.max_encoding_message_size);
        response.map(|messages| {
            Body::messages(EncodeBody::new_server(encoder, messages, encoding, compression, size_max))
        })
    }
}

impl<T: fmt::Debug> fmt::Debug for Grpc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grpc")
            .field("codec", &self.codec)
            .field("accept_compression_encodings", &self.accepts)
            .field("send_compression_encodings", &self.sends)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
