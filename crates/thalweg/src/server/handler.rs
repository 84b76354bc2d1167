//! Adapters from an application's handlers to the engine's.
//!
//! A unary handler returns one response. Each of the other three call types becomes one future that does all sending
//! and receiving.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use http::HeaderMap;
use thalweg_core::metadata::MetadataMap;
use thalweg_core::{Extensions, Request, Response, Status};
use thalweg_engine::server::{MessageResponse, StreamingCall, StreamingHandler, UnaryHandler};
use thalweg_engine::{ConnectionInfo, Encode, Envelope, Pack, RequestHead, Source};

use super::trailers::{LateTrailers, Trailers};
use crate::codec::{self, AnyResponseMessage, BorrowedMessage, OwnedMessage, ResponseMessage, compresses};
use crate::deadline;
use crate::interceptor::Chain;
use crate::message::Message;
use crate::outbound::{self, OutboundMessages};
use crate::streaming::Streaming;

pub(super) struct UnaryMethod<S, F, Req> {
    service: Arc<S>,
    call: F,
    request: PhantomData<fn(Req)>,
}

impl<S, F, Req> UnaryMethod<S, F, Req> {
    pub(super) fn new(service: Arc<S>, call: F) -> Self {
        Self { service, call, request: PhantomData }
    }
}

impl<S, F, Fut, Req, Res> UnaryHandler for UnaryMethod<S, F, Req>
where
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Request<Req>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<Res>, Status>> + Send + 'static,
    Req: Message,
    Res: Message,
{
    type Future = Fut;
    type Output = Result<Response<Res>, Status>;

    #[expect(
        clippy::inline_always,
        reason = "saves about 80 instructions per call: the request is created in place"
    )]
    #[inline(always)]
    fn start(&self, head: &RequestHead, message: Envelope<'_>) -> Result<Fut, Status> {
        let message = codec::decode_only::<Req>(message)?;
        Ok((self.call)(Arc::clone(&self.service), request(head, message)))
    }

    #[inline]
    fn response(output: &Self::Output) -> Result<MessageResponse<'_, impl Encode>, Status> {
        message_response(output)
    }
}

/// A unary method behind interceptors that see heads only: the request of a call they reject is not decoded.
pub(super) struct HeadInterceptedUnaryMethod<S, F, Req> {
    chain: Chain,
    method: UnaryMethod<S, F, Req>,
}

impl<S, F, Req> HeadInterceptedUnaryMethod<S, F, Req> {
    pub(super) fn new(chain: Chain, service: Arc<S>, call: F) -> Self {
        Self { chain, method: UnaryMethod::new(service, call) }
    }
}

impl<S, F, Fut, Req, Res> UnaryHandler for HeadInterceptedUnaryMethod<S, F, Req>
where
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Request<Req>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<Res>, Status>> + Send + 'static,
    Req: Message,
    Res: Message,
{
    type Future = Fut;
    type Output = Result<Response<Res>, Status>;

    fn start(&self, head: &RequestHead, message: Envelope<'_>) -> Result<Fut, Status> {
        let request = self.chain.run_head_functions(request(head, ()))?;
        let message = codec::decode_only::<Req>(message)?;
        Ok((self.method.call)(Arc::clone(&self.method.service), request.map(|()| message)))
    }

    fn response(output: &Self::Output) -> Result<MessageResponse<'_, impl Encode>, Status> {
        any_message_response(output)
    }
}

#[inline]
pub(super) fn message_response<Res: Message>(
    result: &Result<Response<Res>, Status>,
) -> Result<MessageResponse<'_, ResponseMessage<'_, Res>>, Status> {
    let response = result.as_ref().map_err(Status::clone)?;
    Ok(MessageResponse {
        metadata: response.metadata().as_ref(),
        message: ResponseMessage(response),
        trailers: response.extensions().get().map(|Trailers(trailers)| trailers.as_ref()),
    })
}

/// Like [`message_response`], for callers that must not affect the inlining of plain responses.
pub(super) fn any_message_response<Res: Message>(
    result: &Result<Response<Res>, Status>,
) -> Result<MessageResponse<'_, AnyResponseMessage<'_>>, Status> {
    let MessageResponse { metadata, message: ResponseMessage(response), trailers } =
        message_response(result)?;
    Ok(MessageResponse { metadata, message: AnyResponseMessage::new(response), trailers })
}

/// Sends the messages of a streaming response, once there is one.
pub(super) async fn send_responses<St, Res>(mut call: StreamingCall, result: Result<Response<St>, Status>)
where
    St: Stream<Item = Result<Res, Status>> + Send + 'static,
    Res: Message,
{
    match result {
        Ok(response) => {
            let (metadata, messages, mut extensions) = response.into_parts();
            if !compresses(&extensions) {
                call.disable_compression();
            }
            let trailers = extensions.remove().map(|Trailers(trailers)| trailers.into_headers());
            let responses =
                Responses { messages: OutboundMessages::new(messages), late: extensions.remove() };
            call.respond_stream(metadata.as_ref(), responses, trailers).await;
        }
        Err(status) => call.fail(&status),
    }
}

/// A handler's responses as an engine source.
struct Responses<St, Res> {
    messages: OutboundMessages<St, outbound::Responses<Res>>,
    late: Option<LateTrailers>,
}

impl<St, Res> Stream for Responses<St, Res>
where
    St: Stream<Item = Result<Res, Status>>,
    Res: Message,
{
    type Item = Result<OwnedMessage<Res>, Status>;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.messages).poll_next(cx).map(|item| item.map(|result| result.map(OwnedMessage)))
    }
}

impl<St, Res> Source for Responses<St, Res>
where
    St: Stream<Item = Result<Res, Status>>,
    Res: Message,
{
    type Message = OwnedMessage<Res>;

    fn poll_fill(&mut self, cx: &mut Context<'_>, pack: &mut Pack) -> Poll<Result<(), Status>> {
        let stream = match &mut self.messages {
            OutboundMessages::Stream(stream) => stream,
            OutboundMessages::Lending(lending) => return lending.poll_fill(cx, pack),
        };
        while !pack.is_full() {
            match stream.as_mut().poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(Ok(message))) => pack.push(&BorrowedMessage(&message)),
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Err(status)),
            };
        }
        Poll::Pending
    }

    fn take_trailers(&mut self) -> Option<HeaderMap> {
        self.late.take().map(|late| late.get().into_headers())
    }
}

#[inline]
pub(super) fn request<T>(head: &RequestHead, message: T) -> Request<T> {
    let metadata = MetadataMap::from_headers(head.metadata.clone());
    let extensions = match (head.timeout, &head.connection) {
        (None, None) => Extensions::default(),
        (timeout, connection) => request_extensions(timeout, connection.as_ref()),
    };
    Request::from_parts(metadata, extensions, message)
}

/// Not inlined: creating the extensions' map would slow down all requests.
#[inline(never)]
fn request_extensions(timeout: Option<Duration>, connection: Option<&Arc<ConnectionInfo>>) -> Extensions {
    let mut extensions = timeout.map_or_else(Extensions::default, deadline::extensions);
    if let Some(connection) = connection {
        extensions.insert(Arc::clone(connection));
    }
    extensions
}

type CallFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A method of one of the three streaming call types: creates a call's future.
pub(super) trait StreamingMethod: Send + Sync + 'static {
    fn start(&self, request: Request<()>, call: StreamingCall) -> CallFuture;
}

/// A streaming method as an engine handler.
pub(super) struct StreamingMethodHandler<M>(pub(super) M);

impl<M: StreamingMethod> StreamingHandler for StreamingMethodHandler<M> {
    fn start(&self, head: &RequestHead, call: StreamingCall) -> CallFuture {
        self.0.start(request(head, ()), call)
    }
}

/// A streaming method behind interceptors that see heads only.
pub(super) struct HeadInterceptedStreaming<M> {
    pub(super) chain: Chain,
    pub(super) method: M,
}

impl<M: StreamingMethod> StreamingHandler for HeadInterceptedStreaming<M> {
    fn start(&self, head: &RequestHead, call: StreamingCall) -> CallFuture {
        match self.chain.run_head_functions(request(head, ())) {
            Ok(request) => self.method.start(request, call),
            Err(status) => Box::pin(async move { call.fail(&status) }),
        }
    }
}

/// Declares a streaming method.
macro_rules! streaming_method {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        pub(super) struct $name<S, F, Req> {
            service: Arc<S>,
            call: Arc<F>,
            request: PhantomData<fn(Req)>,
        }

        impl<S, F, Req> $name<S, F, Req> {
            pub(super) fn new(service: Arc<S>, call: F) -> Self {
                Self { service, call: Arc::new(call), request: PhantomData }
            }
        }
    };
}

streaming_method!(ClientStreamingMethod);
streaming_method!(ServerStreamingMethod);
streaming_method!(BidiMethod);

impl<S, F, Fut, Req, Res> StreamingMethod for ClientStreamingMethod<S, F, Req>
where
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Request<Streaming<Req>>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<Res>, Status>> + Send + 'static,
    Req: Message,
    Res: Message,
{
    fn start(&self, request: Request<()>, call: StreamingCall) -> CallFuture {
        let requests = Streaming::new(call.requests());
        let future = (self.call)(Arc::clone(&self.service), request.map(|()| requests));
        Box::pin(async move {
            let result = future.await;
            call.respond(message_response(&result));
        })
    }
}

impl<S, F, Fut, Req, St, Res> StreamingMethod for ServerStreamingMethod<S, F, Req>
where
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Request<Req>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<St>, Status>> + Send + 'static,
    St: Stream<Item = Result<Res, Status>> + Send + 'static,
    Req: Message,
    Res: Message,
{
    fn start(&self, request: Request<()>, call: StreamingCall) -> CallFuture {
        let mut requests = Streaming::<Req>::new(call.requests());
        let (service, handler) = (Arc::clone(&self.service), Arc::clone(&self.call));
        Box::pin(async move {
            let result = match only_message(&mut requests).await {
                Ok(message) => handler(service, request.map(|()| message)).await,
                Err(status) => Err(status),
            };
            send_responses(call, result).await;
        })
    }
}

impl<S, F, Fut, Req, St, Res> StreamingMethod for BidiMethod<S, F, Req>
where
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Request<Streaming<Req>>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<St>, Status>> + Send + 'static,
    St: Stream<Item = Result<Res, Status>> + Send + 'static,
    Req: Message,
    Res: Message,
{
    fn start(&self, request: Request<()>, call: StreamingCall) -> CallFuture {
        let requests = Streaming::new(call.requests());
        let future = (self.call)(Arc::clone(&self.service), request.map(|()| requests));
        Box::pin(async move {
            let result = future.await;
            send_responses(call, result).await;
        })
    }
}

/// Reads the request of a method with exactly one.
pub(super) async fn only_message<Req: Message>(requests: &mut Streaming<Req>) -> Result<Req, Status> {
    let Some(message) = requests.message().await? else {
        return Err(Status::unimplemented("the client sent no request message"));
    };
    match requests.message().await? {
        None => {
            requests.keep_taken();
            Ok(message)
        }
        Some(_) => Err(Status::unimplemented("the client sent more than one request message")),
    }
}
