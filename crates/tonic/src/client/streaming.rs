//! Futures of streaming calls: [`Responses`] and [`OnlyResponse`].
//!
//! tonic encodes the requests and decodes the responses. Its futures have the type of the request stream as a
//! parameter, and so would the futures of generated functions that await them. rustc cannot prove such a future `Send`
//! if the stream contains a trait object or a closure ("higher-ranked lifetime error"). Therefore tonic's functions are
//! polled once, outside of a future, for the single step that is needed.

use std::fmt;
use std::future::{Future, Pending, Ready, pending, ready};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use http::uri::PathAndQuery;
use http_body::Body as HttpBody;
use pin_project_lite::pin_project;
use tokio_stream::{Stream, StreamExt};
use tower::Service;
use vocabulary::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder, Streaming};
use vocabulary::metadata::MetadataMap;
use vocabulary::{Request, Response, Status};

use super::config::Config;
use crate::BoxError;
use crate::body::Body;

pin_project! {
    /// Waits for the headers of a call's response, and returns the stream of its messages.
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Responses<'a, F, D> {
        #[pin]
        called: PendingCall<F>,
        decoder: Option<D>,
        config: &'a Config,
    }
}

pin_project! {
    #[project = PendingCallProjection]
    enum PendingCall<F> {
        Waiting { #[pin] future: F },
        Failed { status: Option<Status> },
    }
}

impl<'a, F, D> Responses<'a, F, D> {
    pub(super) fn new(called: Result<F, Status>, decoder: D, config: &'a Config) -> Self {
        let called = match called {
            Ok(future) => PendingCall::Waiting { future },
            Err(status) => PendingCall::Failed { status: Some(status) },
        };
        Self { called, decoder: Some(decoder), config }
    }
}

impl<F, B, E, D> Future for Responses<'_, F, D>
where
    F: Future<Output = Result<http::Response<B>, E>>,
    B: HttpBody + Send + 'static,
    B::Error: Into<BoxError>,
    E: Into<BoxError>,
    D: Decoder<Error = Status> + Send + 'static,
    D::Item: Send + Sync + 'static,
{
    type Output = Result<Response<Streaming<D::Item>>, Status>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = match this.called.project() {
            PendingCallProjection::Waiting { future } => {
                ready!(future.poll(cx)).map_err(|error| Status::from_error(error.into()))?
            }
            PendingCallProjection::Failed { status } => return Poll::Ready(Err(take_once(status))),
        };
        Poll::Ready(this.config.responses(response, take_once(this.decoder)))
    }
}

/// # Panics
/// Panics if a future is polled after completion.
fn take_once<T>(option: &mut Option<T>) -> T {
    option.take().expect("polled after completion")
}

pin_project! {
    /// Waits for the only message of a call's response, and for the end of the call.
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct OnlyResponse<'a, F, D: Decoder> {
        #[pin]
        responses: Responses<'a, F, D>,
        message: Option<OnlyMessage<D::Item>>,
    }
}

type OnlyMessage<M> = Pin<Box<dyn Future<Output = Result<Response<M>, Status>> + Send>>;

impl<'a, F, D: Decoder> OnlyResponse<'a, F, D> {
    pub(super) fn new(responses: Responses<'a, F, D>) -> Self {
        Self { responses, message: None }
    }
}

impl<F, B, E, D> Future for OnlyResponse<'_, F, D>
where
    F: Future<Output = Result<http::Response<B>, E>>,
    B: HttpBody + Send + 'static,
    B::Error: Into<BoxError>,
    E: Into<BoxError>,
    D: Decoder<Error = Status> + Send + 'static,
    D::Item: Send + Sync + 'static,
{
    type Output = Result<Response<D::Item>, Status>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Some(message) = this.message {
            return message.as_mut().poll(cx);
        }
        let responses = ready!(this.responses.poll(cx))?;
        this.message.insert(Box::pin(only_message(responses))).as_mut().poll(cx)
    }
}

impl Config {
    /// Creates the request of a call with a stream of requests.
    pub(super) fn stream_request<S, E>(
        &self,
        request: Request<S>,
        path: PathAndQuery,
        encoder: E,
    ) -> Result<http::Request<Body>, Status>
    where
        S: Stream<Item = E::Item> + Send + 'static,
        E: Encoder<Error = Status> + Send + 'static,
        E::Item: Send + Sync + 'static,
    {
        let mut called = None;
        let codec = EncodeOnlyCodec(Some(encoder));
        let _ = poll_once(self.tonic_grpc(CapturesRequest(&mut called)).streaming(request, path, codec));
        let request = called.ok_or_else(|| Status::internal("the call has no request"))?;
        Ok(request.map(Body::new))
    }

    /// Returns the messages of a received response.
    pub(super) fn responses<B, D>(
        &self,
        response: http::Response<B>,
        decoder: D,
    ) -> Result<Response<Streaming<D::Item>>, Status>
    where
        B: HttpBody + Send + 'static,
        B::Error: Into<BoxError>,
        D: Decoder<Error = Status> + Send + 'static,
        D::Item: Send + Sync + 'static,
    {
        let no_requests = Request::new(tokio_stream::empty::<()>());
        let path = PathAndQuery::from_static("/");
        let codec = DecodeOnlyCodec(Some(decoder));
        match poll_once(self.tonic_grpc(RespondsWith(Some(response))).streaming(no_requests, path, codec)) {
            Poll::Ready(responses) => responses,
            Poll::Pending => Err(Status::internal("the response was not read")),
        }
    }
}

/// Polls a future that never waits.
fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns the only message of a response, with the metadata of its headers and trailers.
pub(super) async fn only_message<M>(response: Response<Streaming<M>>) -> Result<Response<M>, Status> {
    let (mut metadata, mut messages, extensions) = response.into_parts();
    let message = messages.try_next().await.map_err(|mut status| {
        let mut all_metadata = metadata.clone().into_headers();
        all_metadata.extend(std::mem::take(status.metadata_mut()).into_headers());
        *status.metadata_mut() = MetadataMap::from_headers(all_metadata);
        status
    })?;
    let message = message.ok_or_else(|| Status::internal("Missing response message."))?;
    if let Some(trailers) = messages.trailers().await? {
        let mut headers = metadata.into_headers();
        headers.extend(trailers.into_headers());
        metadata = MetadataMap::from_headers(headers);
    }
    Ok(Response::from_parts(metadata, message, extensions))
}

/// Captures the request of tonic's client.
struct CapturesRequest<'a>(&'a mut Option<http::Request<vocabulary::body::Body>>);

impl Service<http::Request<vocabulary::body::Body>> for CapturesRequest<'_> {
    type Response = http::Response<vocabulary::body::Body>;
    type Error = Status;
    type Future = Pending<Result<Self::Response, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<vocabulary::body::Body>) -> Self::Future {
        *self.0 = Some(request);
        pending()
    }
}

/// Responds with a response it already has.
struct RespondsWith<B>(Option<http::Response<B>>);

impl<B> Service<http::Request<vocabulary::body::Body>> for RespondsWith<B> {
    type Response = http::Response<B>;
    type Error = Status;
    type Future = Ready<Result<http::Response<B>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<vocabulary::body::Body>) -> Self::Future {
        ready(self.0.take().ok_or_else(|| Status::internal("the response was already read")))
    }
}

/// A codec that only encodes.
struct EncodeOnlyCodec<E>(Option<E>);

impl<E> Codec for EncodeOnlyCodec<E>
where
    E: Encoder<Error = Status> + Send + 'static,
    E::Item: Send + 'static,
{
    type Encode = E::Item;
    type Decode = ();
    type Encoder = E;
    type Decoder = UnusedCodec;

    fn encoder(&mut self) -> E {
        self.0.take().unwrap_or_else(|| unreachable!("requests are encoded once"))
    }

    fn decoder(&mut self) -> UnusedCodec {
        UnusedCodec
    }
}

/// A codec that only decodes.
struct DecodeOnlyCodec<D>(Option<D>);

impl<D> Codec for DecodeOnlyCodec<D>
where
    D: Decoder<Error = Status> + Send + 'static,
    D::Item: Send + 'static,
{
    type Encode = ();
    type Decode = D::Item;
    type Encoder = UnusedCodec;
    type Decoder = D;

    fn encoder(&mut self) -> UnusedCodec {
        UnusedCodec
    }

    fn decoder(&mut self) -> D {
        self.0.take().unwrap_or_else(|| unreachable!("a response is read once"))
    }
}

/// The unused half of a codec.
struct UnusedCodec;

impl Encoder for UnusedCodec {
    type Item = ();
    type Error = Status;

    fn encode(&mut self, (): (), _: &mut EncodeBuf<'_>) -> Result<(), Status> {
        Ok(())
    }
}

impl Decoder for UnusedCodec {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, _: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        Ok(None)
    }
}

impl<F, D> fmt::Debug for Responses<'_, F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responses").finish_non_exhaustive()
    }
}

impl<F, D: Decoder> fmt::Debug for OnlyResponse<'_, F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnlyResponse").finish_non_exhaustive()
    }
}
