//! Typed handling of HTTP requests: [`Grpc`].

use std::fmt;
use std::future::Future;
use std::sync::LazyLock;

use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderValue};
use http_body::Body as HttpBody;
use thalweg_engine::raw::Trailers;
use vocabulary::codec::{Codec, CompressionEncoding, EnabledCompressionEncodings};
use vocabulary::metadata::MetadataMap;
use vocabulary::server::{ClientStreamingService, ServerStreamingService, StreamingService, UnaryService};
use vocabulary::{Request, Response, Status};

use crate::BoxError;
use crate::body::Body;
use crate::fields::{GRPC_ENCODING, GRPC_MESSAGE, GRPC_MESSAGE_TYPE, GRPC_STATUS};
use crate::single;

/// Handles the calls of one method; a codec encodes and decodes the messages.
///
/// A unary call without compression is decoded from the piece that it arrived as, and the response is one piece. All
/// other calls use tonic's code.
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

    /// Sets the maximum size of a received message in bytes; 4 MiB by default.
    #[must_use]
    pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
        self.max_decoding_message_size = Some(limit);
        self
    }

    /// Sets the maximum size of a sent message in bytes; unlimited by default.
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
        for (enabled, added) in [(&mut self.accepts, accept_encodings), (&mut self.sends, send_encodings)] {
            let mut added = added;
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
    pub fn unary<S, B>(
        &mut self,
        mut service: S,
        req: http::Request<B>,
    ) -> impl Future<Output = http::Response<Body>>
    where
        S: UnaryService<T::Decode, Response = T::Encode>,
        B: HttpBody + Send + 'static,
        B::Error: Into<BoxError> + Send,
    {
        // The work before the first await stays outside the future, which would otherwise hold its variables twice.
        let started = match self.single_request(req) {
            Ok(Ok(request)) => StartedCall::Called(service.call(request)),
            Ok(Err(status)) => StartedCall::Failed(status),
            Err(request) => StartedCall::AsStream(Box::new((service, *request))),
        };
        let grpc = self;
        async move {
            match started {
                StartedCall::Called(called) => match called.await {
                    Ok(response) => grpc.single_response(response),
                    Err(status) => status.into_http(),
                },
                StartedCall::Failed(status) => status.into_http(),
                StartedCall::AsStream(call) => {
                    let (service, (parts, body)) = *call;
                    let request = http::Request::from_parts(parts, body);
                    Box::pin(grpc.tonic_grpc().unary(service, request)).await.map(Body::new)
                }
            }
        }
    }

    /// Returns a unary call's request if it is plain and in one piece; otherwise the raw request.
    fn single_request<B>(
        &mut self,
        request: http::Request<B>,
    ) -> Result<SingleRequest<T::Decode>, GeneralRequest>
    where
        B: HttpBody + Send + 'static,
        B::Error: Into<BoxError> + Send,
    {
        let (parts, body) = request.into_parts();
        let mut body = Body::from_any(body);
        if !self.sends.is_empty() || parts.headers.keys().any(|name| *name == GRPC_ENCODING) {
            return Err(Box::new((parts, body)));
        }
        let Some((bytes, trailers)) = body.take_single() else { return Err(Box::new((parts, body))) };
        if !single::is_single(&bytes) {
            return Err(Box::new((parts, Body::single(bytes, trailers))));
        }
        let message = single::decode(self.codec.decoder(), bytes, self.max_decoding_message_size);
        Ok(message.map(|message| {
            Request::from_parts(MetadataMap::from_headers(parts.headers), parts.extensions, message)
        }))
    }

    fn single_response(&mut self, response: Response<T::Encode>) -> http::Response<Body> {
        let (metadata, message, extensions) = response.into_parts();
        let message = single::encode(self.codec.encoder(), message, self.max_encoding_message_size);
        let body = match message {
            Ok(piece) => Body::single(piece, Trailers::GrpcOk),
            Err(status) => return status.into_http(),
        };
        let mut response = http::Response::new(body);
        *response.version_mut() = http::Version::HTTP_2;
        *response.headers_mut() = headers(metadata);
        *response.extensions_mut() = extensions;
        response
    }

    /// Handles a call of a server-streaming method.
    pub async fn server_streaming<S, B>(&mut self, service: S, req: http::Request<B>) -> http::Response<Body>
    where
        S: ServerStreamingService<T::Decode, Response = T::Encode>,
        S::ResponseStream: Send + 'static,
        B: HttpBody + Send + 'static,
        B::Error: Into<BoxError> + Send,
    {
        self.tonic_grpc().server_streaming(service, req).await.map(Body::new)
    }

    /// Handles a call of a client-streaming method.
    pub async fn client_streaming<S, B>(&mut self, service: S, req: http::Request<B>) -> http::Response<Body>
    where
        S: ClientStreamingService<T::Decode, Response = T::Encode>,
        B: HttpBody + Send + 'static,
        B::Error: Into<BoxError> + Send + 'static,
    {
        self.tonic_grpc().client_streaming(service, req).await.map(Body::new)
    }

    /// Handles a call of a bidirectional method.
    pub async fn streaming<S, B>(&mut self, service: S, req: http::Request<B>) -> http::Response<Body>
    where
        S: StreamingService<T::Decode, Response = T::Encode> + Send,
        S::ResponseStream: Send + 'static,
        B: HttpBody + Send + 'static,
        B::Error: Into<BoxError> + Send,
    {
        self.tonic_grpc().streaming(service, req).await.map(Body::new)
    }

    /// Returns tonic's own handler with the same settings.
    fn tonic_grpc(&mut self) -> vocabulary::server::Grpc<BorrowedCodec<'_, T>> {
        vocabulary::server::Grpc::new(BorrowedCodec(&mut self.codec))
            .apply_compression_config(self.accepts, self.sends)
            .apply_max_message_size_config(self.max_decoding_message_size, self.max_encoding_message_size)
    }
}

/// A unary call before its first await.
enum StartedCall<F, S> {
    Called(F),
    /// Handled as a call with a stream of a single message.
    AsStream(Box<(S, (http::request::Parts, Body))>),
    Failed(Status),
}

type SingleRequest<M> = Result<Request<M>, Status>;
/// A request that needs the general path.
type GeneralRequest = Box<(http::request::Parts, Body)>;

/// Creates the headers of a response.
fn headers(metadata: MetadataMap) -> HeaderMap {
    static DEFAULT_HEADERS: LazyLock<HeaderMap> = LazyLock::new(|| {
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/grpc"))])
    });
    let mut headers = metadata.into_headers();
    if headers.is_empty() {
        return DEFAULT_HEADERS.clone();
    }
    for reserved in [TE, GRPC_MESSAGE, GRPC_MESSAGE_TYPE, GRPC_STATUS] {
        headers.remove(reserved);
    }
    headers.extend(DEFAULT_HEADERS.clone());
    headers
}

/// Lends the codec to tonic's handler.
struct BorrowedCodec<'a, T>(&'a mut T);

impl<T: Codec> Codec for BorrowedCodec<'_, T> {
    type Encode = T::Encode;
    type Decode = T::Decode;
    type Encoder = T::Encoder;
    type Decoder = T::Decoder;

    fn encoder(&mut self) -> T::Encoder {
        self.0.encoder()
    }

    fn decoder(&mut self) -> T::Decoder {
        self.0.decoder()
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
