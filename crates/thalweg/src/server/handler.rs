//! Handlers with their types erased: what the dispatcher calls.
//!
//! A unary handler is polled where its call stands in the turn, and its result encoded straight into the connection's
//! output. The other three kinds of methods become one future each that does all its sending and receiving.

use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use tokio::time::Instant;
use tonic::{Extensions, Request, Response, Status};

use super::dispatch::{ReadyCall, Turn, panicked};
use super::endpoint::Route;
use super::methods::ServerMethod;
use super::respond;
use super::task::{CallTask, StreamingCall};
use crate::grpc::codec::{self, Wire};
use crate::grpc::compression::Encoding;
use crate::grpc::request::RequestHead;
use crate::message::Message;
use crate::streaming::Streaming;

/// What runs a method's calls.
pub(super) enum Handler {
    Unary(Box<dyn RunUnary>),
    Streaming(Box<dyn StartStreaming>),
}

/// A unary method, whatever its messages.
pub(super) trait RunUnary: Send + Sync {
    /// Runs the calls of `method` that stand first in `turn`. The answers of those that are ready join the output, the
    /// others go on in tasks.
    fn run(&self, method: &ServerMethod, turn: &mut Turn<'_>);
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

impl<S, F, Fut, Req, Res> UnaryMethod<S, F, Req>
where
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Request<Req>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<Res>, Status>> + Send + 'static,
    Req: Message,
    Res: Message,
{
    /// Decodes the request and calls the handler.
    fn start(&self, route: &Route, wire: Wire<'_>) -> Result<Fut, Status> {
        let size_max = route.method.options.max_decoding_message_size;
        let message = codec::decode_only::<Req>(wire, route.head.encoding, size_max)?;
        Ok((self.call)(Arc::clone(&self.service), request(&route.head, message)))
    }

    /// Takes one call as far as it goes at once: its result, or its future in `place`.
    fn attempt(
        &self,
        route: &Route,
        wire: Wire<'_>,
        place: &mut Pin<Box<Option<Fut>>>,
        clock: &mut Instant,
    ) -> Option<Result<Response<Res>, Status>> {
        match self.start(route, wire) {
            Ok(future) => place.set(Some(future)),
            Err(status) => return Some(Err(status)),
        }
        let pace = &route.method.pace;
        if !pace.is_quick() {
            return None;
        }
        // The waker does nothing: if the handler has to wait, its task polls it again with one that does.
        let mut cx = Context::from_waker(Waker::noop());
        let polled = place.as_mut().as_pin_mut()?.poll(&mut cx);
        pace.note(clock);
        match polled {
            Poll::Pending => None,
            Poll::Ready(result) => {
                place.set(None);
                Some(result)
            }
        }
    }
}

impl<S, F, Fut, Req, Res> RunUnary for UnaryMethod<S, F, Req>
where
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Request<Req>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<Res>, Status>> + Send + 'static,
    Req: Message,
    Res: Message,
{
    fn run(&self, method: &ServerMethod, turn: &mut Turn<'_>) {
        // One place for all futures that are ready at once.
        let mut place = Box::pin(None);
        while let Some(ReadyCall { route, reply, body }) = turn.next_of(method) {
            let wire = body.wire(turn.buffer);
            let attempt = || self.attempt(&route, wire, &mut place, &mut turn.clock);
            match catch_unwind(AssertUnwindSafe(attempt)) {
                Ok(Some(result)) => respond::send_result(&mut turn.connection.lock(), &reply, &result),
                Ok(None) => {
                    let running = std::mem::replace(&mut place, Box::pin(None));
                    tokio::spawn(CallTask::unary(turn.connection, reply, &route, running));
                }
                Err(_) => {
                    place.set(None);
                    respond::send_status(&mut turn.connection.lock(), &reply, &panicked());
                }
            }
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
            call.finish_unary(&result);
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
