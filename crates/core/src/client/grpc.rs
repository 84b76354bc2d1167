//! [`Grpc`]: typed calls over a service of HTTP requests.

use std::fmt;
use std::future::poll_fn;

use http::header::{CONTENT_TYPE, HeaderValue, TE};
use http::uri::{PathAndQuery, Uri};
use http::{Method, Version};
use tokio_stream::{Stream, StreamExt};

use super::grpc_service::GrpcService;
use crate::body::Body;
use crate::codec::{
    ACCEPT_ENCODING, Codec, CompressionEncoding, Decoder, ENCODING, EnabledCompressionEncodings, EncodeBody,
    Encoder,
};
use crate::error::BoxError;
use crate::metadata::GRPC_CONTENT_TYPE;
use crate::{Code, Request, Response, Status, Streaming};

/// Makes calls over a service; generated clients wrap it.
#[derive(Clone)]
pub struct Grpc<T> {
    inner: T,
    origin: Uri,
    sends: Option<CompressionEncoding>,
    accepts: EnabledCompressionEncodings,
    max_decoding_message_size: Option<usize>,
    max_encoding_message_size: Option<usize>,
}

impl<T> Grpc<T> {
    /// Creates a client that makes its calls over `inner`.
    pub fn new(inner: T) -> Self {
        Self::with_origin(inner, Uri::default())
    }

    /// Creates a client whose requests have this scheme, authority and prefix of the path.
    pub fn with_origin(inner: T, origin: Uri) -> Self {
        Self {
            inner,
            origin,
            sends: None,
            accepts: EnabledCompressionEncodings::default(),
            max_decoding_message_size: None,
            max_encoding_message_size: None,
        }
    }

    /// Compresses requests with `encoding`; off by default. A server that does not support it fails the calls.
    #[must_use]
    pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
        self.sends = Some(encoding);
        self
    }

    /// Accepts responses compressed with `encoding`; none by default.
    #[must_use]
    pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
        self.accepts.enable(encoding);
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

    /// Waits until the service can take another call.
    ///
    /// # Errors
    ///
    /// The service's error if it will never take one.
    pub async fn ready(&mut self) -> Result<(), T::Error>
    where
        T: GrpcService<Body>,
    {
        poll_fn(|cx| self.inner.poll_ready(cx)).await
    }

    /// Calls a unary method.
    ///
    /// # Errors
    ///
    /// The call's status if it is not OK.
    pub async fn unary<M1, M2, C>(
        &mut self,
        request: Request<M1>,
        path: PathAndQuery,
        codec: C,
    ) -> Result<Response<M2>, Status>
    where
        T: GrpcService<Body>,
        T::ResponseBody: http_body::Body + Send + 'static,
        <T::ResponseBody as http_body::Body>::Error: Into<BoxError>,
        C: Codec<Encode = M1, Decode = M2>,
        M1: Send + Sync + 'static,
        M2: Send + Sync + 'static,
    {
        self.client_streaming(request.map(tokio_stream::once), path, codec).await
    }

    /// Calls a client-streaming method.
    ///
    /// # Errors
    ///
    /// The call's status if it is not OK.
    pub async fn client_streaming<S, M1, M2, C>(
        &mut self,
        request: Request<S>,
        path: PathAndQuery,
        codec: C,
    ) -> Result<Response<M2>, Status>
    where
        T: GrpcService<Body>,
        T::ResponseBody: http_body::Body + Send + 'static,
        <T::ResponseBody as http_body::Body>::Error: Into<BoxError>,
        S: Stream<Item = M1> + Send + 'static,
        C: Codec<Encode = M1, Decode = M2>,
        M1: Send + Sync + 'static,
        M2: Send + Sync + 'static,
    {
        only_message(self.streaming(request, path, codec).await?).await
    }

    /// Calls a server-streaming method.
    ///
    /// # Errors
    ///
    /// The call's status if there is no response.
    pub async fn server_streaming<M1, M2, C>(
        &mut self,
        request: Request<M1>,
        path: PathAndQuery,
        codec: C,
    ) -> Result<Response<Streaming<M2>>, Status>
    where
        T: GrpcService<Body>,
        T::ResponseBody: http_body::Body + Send + 'static,
        <T::ResponseBody as http_body::Body>::Error: Into<BoxError>,
        C: Codec<Encode = M1, Decode = M2>,
        M1: Send + Sync + 'static,
        M2: Send + Sync + 'static,
    {
        self.streaming(request.map(tokio_stream::once), path, codec).await
    }

    /// Calls a bidirectional method.
    ///
    /// # Errors
    ///
    /// The call's status if there is no response.
    pub async fn streaming<S, M1, M2, C>(
        &mut self,
        request: Request<S>,
        path: PathAndQuery,
        mut codec: C,
    ) -> Result<Response<Streaming<M2>>, Status>
    where
        T: GrpcService<Body>,
        T::ResponseBody: http_body::Body + Send + 'static,
        <T::ResponseBody as http_body::Body>::Error: Into<BoxError>,
        S: Stream<Item = M1> + Send + 'static,
        C: Codec<Encode = M1, Decode = M2>,
        M1: Send + Sync + 'static,
        M2: Send + Sync + 'static,
    {
        let request = self.http_request(request, path, codec.encoder())?;
        let decoder = codec.decoder();
        let response = self.inner.call(request).await.map_err(|error| Status::from_error(error.into()))?;
        self.response(response, decoder)
    }

    /// Returns the HTTP request of a call.
    fn http_request<S, E>(
        &self,
        mut request: Request<S>,
        path: PathAndQuery,
        encoder: E,
    ) -> Result<http::Request<Body>, Status>
    where
        S: Stream<Item = E::Item> + Send + 'static,
        E: Encoder<Error = Status> + Send + 'static,
        E::Item: Send + Sync + 'static,
    {
        let token = request.remove_cancellation_handle().map(crate::CancellationHandle::into_token);
        let request = request.map(|messages| {
            let (messages, size_max) = (messages.map(Ok), self.max_encoding_message_size);
            Body::messages(EncodeBody::new_client_with_cancellation(
                encoder, messages, self.sends, size_max, token,
            ))
        });
        let mut request = request.into_http(self.uri(path)?, Method::POST, Version::HTTP_2, true);
        let headers = request.headers_mut();
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
        if let Some(encoding) = self.sends {
            headers.insert(ENCODING, HeaderValue::from_static(encoding.name()));
        }
        if let Some(accepted) = self.accepts.accept_encoding() {
            headers.insert(ACCEPT_ENCODING, accepted);
        }
        Ok(request)
    }

    fn uri(&self, path: PathAndQuery) -> Result<Uri, Status> {
        let mut parts = self.origin.clone().into_parts();
        parts.path_and_query = match parts.path_and_query {
            Some(before) if before != "/" => {
                let joined = format!("{}{path}", before.path()).parse();
                Some(joined.map_err(|error| Status::internal(format!("invalid path of the call: {error}")))?)
            }
            _ => Some(path),
        };
        Uri::from_parts(parts).map_err(|error| Status::internal(format!("invalid URI of the call: {error}")))
    }

    /// Returns the messages of a response.
    fn response<B, D>(
        &self,
        response: http::Response<B>,
        decoder: D,
    ) -> Result<Response<Streaming<D::Item>>, Status>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
        D: Decoder<Error = Status> + Send + 'static,
    {
        let encoding = CompressionEncoding::from_encoding_header(response.headers(), self.accepts)?;
        let http_status = response.status();
        let status = Status::from_header_map(response.headers());
        let is_ended = status.is_some();
        if let Some(status) = status.filter(|status| status.code() != Code::Ok) {
            return Err(status);
        }
        Ok(Response::from_http(response.map(|body| {
            if is_ended {
                Streaming::new_empty(decoder, body)
            } else {
                Streaming::new_response(decoder, body, http_status, encoding, self.max_decoding_message_size)
            }
        })))
    }
}

/// Returns the only message of a response, with the metadata of its headers and trailers.
async fn only_message<M>(response: Response<Streaming<M>>) -> Result<Response<M>, Status> {
    let (mut metadata, mut messages, extensions) = response.into_parts();
    let message = messages.message().await.map_err(|mut status| {
        let mut all = metadata.clone();
        all.merge(std::mem::take(status.metadata_mut()));
        *status.metadata_mut() = all;
        status
    })?;
    let message = message.ok_or_else(|| Status::internal("the response has no message"))?;
    if let Some(trailers) = messages.trailers().await? {
        metadata.merge(trailers);
    }
    Ok(Response::from_parts(metadata, message, extensions))
}

impl<T: fmt::Debug> fmt::Debug for Grpc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grpc")
            .field("inner", &self.inner)
            .field("origin", &self.origin)
            .field("compression_encoding", &self.sends)
            .field("accept_compression_encodings", &self.accepts)
            .finish_non_exhaustive()
    }
}
