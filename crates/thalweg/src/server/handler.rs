//! Handlers with their types erased: what the dispatcher calls.
//!
//! A unary handler's future keeps its result until the connection is locked, and then encodes it straight into the
//! connection's output. The other three kinds of methods become one future each that does all its sending and receiving.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use pin_project_lite::pin_project;
use tonic::{Extensions, Request, Response, Status};

use super::respond::{self, Reply};
use super::task::StreamingCall;
use crate::connection::State;
use crate::grpc::codec::{self, Wire};
use crate::grpc::compression::Encoding;
use crate::grpc::request::RequestHead;
use crate::message::Message;
use crate::streaming::Streaming;

/// What runs a method's calls.
pub(super) enum Handler {
    Unary(Box<dyn StartUnary>),
    Streaming(Box<dyn StartStreaming>),
}

/// A unary method, whatever its messages.
pub(super) trait StartUnary: Send + Sync {
    /// Decodes the request and calls the handler.
    fn start(
        &self,
        head: &RequestHead,
        wire: Wire<'_>,
        size_max: usize,
    ) -> Result<Pin<Box<dyn UnaryCall>>, Status>;
}

/// A unary call under way.
pub(super) trait UnaryCall: Send {
    /// Runs the handler; once ready, its result is kept for [`reply`](Self::reply).
    fn poll_run(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()>;

    /// Writes the response.
    fn reply(self: Pin<&mut Self>, state: &mut State, reply: &Reply);
}

/// A method of one of the other three kinds, whatever its messages.
pub(super) trait StartStreaming: Send + Sync {
    /// Calls the handler; the future ends with the call.
    fn start(&self, head: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

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

impl<S, F, Fut, Req, Res> StartUnary for UnaryMethod<S, F, Req>
where
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Request<Req>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<Res>, Status>> + Send + 'static,
    Req: Message,
    Res: Message,
{
    fn start(
        &self,
        head: &RequestHead,
        wire: Wire<'_>,
        size_max: usize,
    ) -> Result<Pin<Box<dyn UnaryCall>>, Status> {
        let message = codec::decode_only::<Req>(wire, head.encoding, size_max)?;
        let future = (self.call)(Arc::clone(&self.service), request(head, message));
        Ok(Box::pin(Running { future: Some(future), result: None }))
    }
}

pin_project! {
    struct Running<Fut, Res> {
        #[pin]
        future: Option<Fut>,
        result: Option<Result<Response<Res>, Status>>,
    }
}

impl<Fut, Res> UnaryCall for Running<Fut, Res>
where
    Fut: Future<Output = Result<Response<Res>, Status>> + Send,
    Res: Message,
{
    fn poll_run(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let Some(future) = this.future.as_mut().as_pin_mut() else { return Poll::Ready(()) };
        match future.poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(result) => {
                *this.result = Some(result);
                this.future.set(None);
                Poll::Ready(())
            }
        }
    }

    fn reply(self: Pin<&mut Self>, state: &mut State, reply: &Reply) {
        match self.project().result.take() {
            Some(Ok(response)) => respond::send_response(state, reply, response),
            Some(Err(status)) => respond::send_status(state, reply, &status),
            None => respond::send_status(state, reply, &Status::internal("the handler has no result")),
        }
    }
}

fn request<T>(head: &RequestHead, message: T) -> Request<T> {
    Request::from_parts(head.metadata.clone(), Extensions::default(), message)
}

/// Declares the erased form of a streaming method: how its future is made from a call.
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

impl<S, F, Fut, Req, Res> StartStreaming for ClientStreamingMethod<S, F, Req>
where
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Request<Streaming<Req>>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<Res>, Status>> + Send + 'static,
    Req: Message,
    Res: Message,
{
    fn start(&self, head: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let future = (self.call)(Arc::clone(&self.service), request(head, call.requests(head.encoding)));
        Box::pin(async move {
            let result = future.await;
            call.finish_unary(result);
        })
    }
}

impl<S, F, Fut, Req, St, Res> StartStreaming for ServerStreamingMethod<S, F, Req>
where
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Request<Req>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<St>, Status>> + Send + 'static,
    St: Stream<Item = Result<Res, Status>> + Send + 'static,
    Req: Message,
    Res: Message,
{
    fn start(&self, head: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut requests = call.requests::<Req>(head.encoding);
        let request = request(head, ());
        let (service, handler) = (Arc::clone(&self.service), Arc::clone(&self.call));
        Box::pin(async move {
            let result = match only_message(&mut requests).await {
                Ok(message) => handler(service, request.map(|()| message)).await,
                Err(status) => Err(status),
            };
            call.finish_stream(result).await;
        })
    }
}

impl<S, F, Fut, Req, St, Res> StartStreaming for BidiMethod<S, F, Req>
where
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Request<Streaming<Req>>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<St>, Status>> + Send + 'static,
    St: Stream<Item = Result<Res, Status>> + Send + 'static,
    Req: Message,
    Res: Message,
{
    fn start(&self, head: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let future = (self.call)(Arc::clone(&self.service), request(head, call.requests(head.encoding)));
        Box::pin(async move {
            let result = future.await;
            call.finish_stream(result).await;
        })
    }
}

/// The request of a method that takes one.
async fn only_message<Req: Message>(requests: &mut Streaming<Req>) -> Result<Req, Status> {
    let Some(message) = requests.message().await? else {
        return Err(Status::internal("the client sent no request message"));
    };
    match requests.message().await? {
        None => Ok(message),
        Some(_) => Err(Status::internal("the client sent more than one request message")),
    }
}

/// How the response of a call may be compressed.
pub(super) fn response_encoding(wanted: Option<Encoding>, head: &RequestHead) -> Encoding {
    wanted.filter(|encoding| head.accepts.contains(*encoding)).unwrap_or_default()
}
