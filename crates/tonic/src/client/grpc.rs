//! Typed calls over a [`GrpcService`]: [`Grpc`].

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::LazyLock;

use http::header::{CONTENT_TYPE, TE};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body::Body as HttpBody;
use thalweg_engine::raw::Trailers;
use tokio_stream::Stream;
use vocabulary::client::GrpcService;
use vocabulary::codec::{Codec, CompressionEncoding, Encoder};
use vocabulary::metadata::MetadataMap;
use vocabulary::{CancellationHandle, Request, Response, Status};

use super::config::Config;
use super::streaming::{OnlyResponse, Responses, only_message};
use crate::BoxError;
use crate::body::Body;
use crate::fields::{GRPC_ENCODING, GRPC_MESSAGE, GRPC_MESSAGE_TYPE, GRPC_STATUS};
use crate::single;

/// Makes calls with a [`GrpcService`]; a codec encodes and decodes the messages.
///
/// A unary call without compression is encoded into one piece, and a response in one piece is decoded directly. All
/// other calls use tonic's code.
#[derive(Clone)]
pub struct Grpc<T> {
    inner: T,
    config: Config,
}

impl<T> Grpc<T> {
    /// Creates a client that calls `inner`.
    pub fn new(inner: T) -> Self {
        Self::with_origin(inner, Uri::default())
    }

    /// Creates a client that calls `inner`, with the scheme and authority of `origin` in request URIs and its path as
    /// their prefix.
    pub fn with_origin(inner: T, origin: Uri) -> Self {
        let has_origin = origin != Uri::default();
        Self { inner, config: Config { origin, has_origin, ..Config::default() } }
    }

    /// Compresses requests with `encoding`; off by default.
    #[must_use]
    pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
        self.config.sends = Some(encoding);
        self
    }

    /// Accepts responses compressed with `encoding`; none by default.
    #[must_use]
    pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
        self.config.accepts.enable(encoding);
        self
    }

    /// Sets the maximum size of a received message in bytes; 4 MiB by default.
    #[must_use]
    pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
        self.config.max_decoding_message_size = Some(limit);
        self
    }

    /// Sets the maximum size of a sent message in bytes; unlimited by default.
    #[must_use]
    pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
        self.config.max_encoding_message_size = Some(limit);
        self
    }

    /// Waits until the service can take another call.
    ///
    /// # Errors
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
    /// The call's status if it is not OK.
    pub fn unary<M1, M2, C>(
        &mut self,
        request: Request<M1>,
        path: PathAndQuery,
        mut codec: C,
    ) -> impl Future<Output = Result<Response<M2>, Status>>
    where
        T: GrpcService<Body>,
        T::ResponseBody: HttpBody + Send + 'static,
        <T::ResponseBody as HttpBody>::Error: Into<BoxError>,
        C: Codec<Encode = M1, Decode = M2>,
        M1: Send + Sync + 'static,
        M2: Send + Sync + 'static,
    {
        // The work before the first await stays outside the future, which would otherwise hold its variables twice.
        let compresses = self.config.sends.is_some() || !self.config.accepts.is_empty();
        let started = if compresses || request.extensions().get::<CancellationHandle>().is_some() {
            StartedCall::AsStream(Box::new((request, path)))
        } else {
            match self.config.request(request, path, codec.encoder()) {
                Ok(request) => StartedCall::Called(self.inner.call(request)),
                Err(status) => StartedCall::Failed(status),
            }
        };
        let grpc = self;
        async move {
            let called = match started {
                StartedCall::Called(called) => called,
                StartedCall::AsStream(request) => {
                    let (request, path) = *request;
                    let request = request.map(tokio_stream::once);
                    return Box::pin(grpc.client_streaming(request, path, codec)).await;
                }
                StartedCall::Failed(status) => return Err(status),
            };
            let response = called.await.map_err(|error| Status::from_error(error.into()))?;
            match grpc.config.single_response(response, &mut codec) {
                Ok(response) => response,
                Err(response) => {
                    let (parts, body) = *response;
                    let response = http::Response::from_parts(parts, body);
                    Box::pin(only_message(grpc.config.responses(response, codec.decoder())?)).await
                }
            }
        }
    }

    /// Calls a client-streaming method.
    ///
    /// # Errors
    /// The call's status if it is not OK.
    pub fn client_streaming<S, M1, M2, C>(
        &mut self,
        request: Request<S>,
        path: PathAndQuery,
        codec: C,
    ) -> OnlyResponse<'_, T::Future, C::Decoder>
    where
        T: GrpcService<Body>,
        T::ResponseBody: HttpBody + Send + 'static,
        <T::ResponseBody as HttpBody>::Error: Into<BoxError>,
        S: Stream<Item = M1> + Send + 'static,
        C: Codec<Encode = M1, Decode = M2>,
        M1: Send + Sync + 'static,
        M2: Send + Sync + 'static,
    {
        OnlyResponse::new(self.streaming(request, path, codec))
    }

    /// Calls a server-streaming method.
    ///
    /// # Errors
    /// The call's status if there is no response.
    pub fn server_streaming<M1, M2, C>(
        &mut self,
        request: Request<M1>,
        path: PathAndQuery,
        codec: C,
    ) -> Responses<'_, T::Future, C::Decoder>
    where
        T: GrpcService<Body>,
        T::ResponseBody: HttpBody + Send + 'static,
        <T::ResponseBody as HttpBody>::Error: Into<BoxError>,
        C: Codec<Encode = M1, Decode = M2>,
        M1: Send + Sync + 'static,
        M2: Send + Sync + 'static,
    {
        self.streaming(request.map(tokio_stream::once), path, codec)
    }

    /// Calls a bidirectional method.
    ///
    /// # Errors
    /// The call's status if there is no response.
    pub fn streaming<S, M1, M2, C>(
        &mut self,
        request: Request<S>,
        path: PathAndQuery,
        mut codec: C,
    ) -> Responses<'_, T::Future, C::Decoder>
    where
        T: GrpcService<Body>,
        T::ResponseBody: HttpBody + Send + 'static,
        <T::ResponseBody as HttpBody>::Error: Into<BoxError>,
        S: Stream<Item = M1> + Send + 'static,
        C: Codec<Encode = M1, Decode = M2>,
        M1: Send + Sync + 'static,
        M2: Send + Sync + 'static,
    {
        let called = self.config.stream_request(request, path, codec.encoder());
        let called = called.map(|request| self.inner.call(request));
        Responses::new(called, codec.decoder(), &self.config)
    }
}

impl Config {
    /// Creates the request of a unary call.
    fn request<E>(
        &self,
        request: Request<E::Item>,
        path: PathAndQuery,
        encoder: E,
    ) -> Result<http::Request<Body>, Status>
    where
        E: Encoder<Error = Status> + 'static,
        E::Item: 'static,
    {
        let (metadata, extensions, message) = request.into_parts();
        let message = single::encode(encoder, message, self.max_encoding_message_size)?;
        let mut request = http::Request::new(Body::single(message, Trailers::None));
        *request.method_mut() = http::Method::POST;
        *request.version_mut() = http::Version::HTTP_2;
        *request.uri_mut() = if self.has_origin { self.uri(path)? } else { path.into() };
        *request.headers_mut() = headers(metadata);
        *request.extensions_mut() = extensions;
        Ok(request)
    }

    /// Returns a unary call's response if it is plain and in one piece; otherwise the raw response.
    fn single_response<B, C>(
        &self,
        response: http::Response<B>,
        codec: &mut C,
    ) -> Result<SingleResponse<C::Decode>, GeneralResponse>
    where
        B: HttpBody + Send + 'static,
        B::Error: Into<BoxError>,
        C: Codec,
    {
        let (mut parts, body) = response.into_parts();
        let mut body = Body::from_any(body);
        let is_plain = |name: &HeaderName| *name != GRPC_STATUS && *name != GRPC_ENCODING;
        if parts.status != StatusCode::OK || !parts.headers.keys().all(is_plain) {
            return Err(Box::new((parts, body)));
        }
        let Some((bytes, trailers)) = body.take_single() else { return Err(Box::new((parts, body))) };
        if !matches!(trailers, Trailers::GrpcOk) || !single::is_single(&bytes) {
            return Err(Box::new((parts, Body::single(bytes, trailers))));
        }
        let message = single::decode(codec.decoder(), bytes, self.max_decoding_message_size);
        Ok(message.map(|message| {
            parts.headers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
            Response::from_parts(MetadataMap::from_headers(parts.headers), message, parts.extensions)
        }))
    }
}

/// A unary call before its first await.
enum StartedCall<F, M> {
    Called(F),
    /// Made as a call with a stream of a single message.
    AsStream(Box<(Request<M>, PathAndQuery)>),
    Failed(Status),
}

type SingleResponse<M> = Result<Response<M>, Status>;
/// A response that needs the general path.
type GeneralResponse = Box<(http::response::Parts, Body)>;

/// Creates the headers of a request.
fn headers(metadata: MetadataMap) -> HeaderMap {
    static DEFAULT_HEADERS: LazyLock<HeaderMap> = LazyLock::new(|| {
        let values = [(TE, "trailers"), (CONTENT_TYPE, "application/grpc")];
        values.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
    });
    let mut headers = metadata.into_headers();
    if headers.is_empty() {
        return DEFAULT_HEADERS.clone();
    }
    for reserved in [GRPC_MESSAGE, GRPC_MESSAGE_TYPE, GRPC_STATUS] {
        headers.remove(reserved);
    }
    headers.extend(DEFAULT_HEADERS.clone());
    headers
}

impl<T: fmt::Debug> fmt::Debug for Grpc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grpc")
            .field("inner", &self.inner)
            .field("origin", &self.config.origin)
            .field("compression_encoding", &self.config.sends)
            .field("accept_compression_encodings", &self.config.accepts)
            .finish()
    }
}
