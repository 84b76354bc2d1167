//! Methods behind interceptors that see messages.
//!
//! Interceptors see type-erased messages; the innermost functions below restore the types.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use thalweg_core::{Request, Response, Status};
use thalweg_engine::server::{MessageResponse, StreamingCall, StreamingHandler, UnaryHandler};
use thalweg_engine::{Encode, Envelope, Method, RequestHead};

use super::handler::{message_response, only_message, request, send_responses};
use crate::codec;
use crate::interceptor::{AnyMessage, BoxFuture, Call, CallType, Chain, Last, Messages, Reply};
use crate::message::Message;
use crate::streaming::Streaming;

/// A method as interceptors see it; its requests are decoded as `Req`.
pub(super) struct Intercepted<Req> {
    chain: Chain,
    method: Arc<Method>,
    call_type: CallType,
    last: Arc<Last>,
    request: PhantomData<fn(Req)>,
}

impl<Req> Intercepted<Req> {
    pub(super) fn new(chain: Chain, method: Method, call_type: CallType, last: Arc<Last>) -> Self {
        Self { chain, method: Arc::new(method), call_type, last, request: PhantomData }
    }

    fn call(&self, request: Request<Messages>) -> Call {
        Call::new(Arc::clone(&self.method), self.call_type, None, None, request)
    }
}

impl<Req: Message> UnaryHandler for Intercepted<Req> {
    type Future = BoxFuture<Result<Response<AnyMessage>, Status>>;
    type Output = Result<Response<AnyMessage>, Status>;

    fn start(&self, head: &RequestHead, message: Envelope<'_>) -> Result<Self::Future, Status> {
        let request = self.chain.run_head_functions(request(head, ()))?;
        let message = codec::decode_only::<Req>(message)?;
        let call = self.call(request.map(|()| Messages::one(message)));
        let response = self.chain.run_after_head_functions(call, Arc::clone(&self.last));
        Ok(Box::pin(async move { only(response.await?).await }))
    }

    fn response(output: &Self::Output) -> Result<MessageResponse<'_, impl Encode>, Status> {
        message_response(output)
    }
}

impl<Req: Message> StreamingHandler for Intercepted<Req> {
    fn start(&self, head: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let request = match self.chain.run_head_functions(request(head, ())) {
            Ok(request) => request,
            Err(status) => return Box::pin(async move { call.fail(&status) }),
        };
        let mut requests = Streaming::<Req>::new(call.requests());
        let (chain, last, call_type) = (self.chain.clone(), Arc::clone(&self.last), self.call_type);
        let intercepted = self.call(request.map(|()| Messages::none()));
        Box::pin(async move {
            let response = async {
                let messages = if call_type.has_one_request() {
                    Messages::one(only_message(&mut requests).await?)
                } else {
                    Messages::received(requests)
                };
                chain.run_after_head_functions(intercepted.map_messages(|_| messages), last).await
            };
            let response = response.await;
            if call_type.has_one_response() {
                let response = match response {
                    Ok(response) => only(response).await,
                    Err(status) => Err(status),
                };
                call.respond(message_response(&response));
            } else {
                send_responses(call, response).await;
            }
        })
    }
}

/// Returns the response of a call with exactly one.
async fn only(response: Reply) -> Result<Response<AnyMessage>, Status> {
    let (metadata, messages, extensions) = response.into_parts();
    Ok(Response::from_parts(metadata, messages.only().await?, extensions))
}

async fn one_request<Req: Message>(call: Call) -> Result<Request<Req>, Status> {
    let (metadata, extensions, messages) = call.into_request().into_parts();
    Ok(Request::from_parts(metadata, extensions, messages.only().await?.into_message()?))
}

fn streaming_request<Req: Message>(call: Call) -> Request<Streaming<Req>> {
    call.into_request().map(Messages::into_streaming)
}

/// Declares the innermost function of one call type: runs the handler, from a call to its response.
macro_rules! innermost_function {
    (
        $name:ident<$($stream:ident)?>: $request_type:ty => $response_type:ty;
        |$call:ident| $request:expr, $messages:path
    ) => {
        pub(super) fn $name<S, F, Fut, Req, Res, $($stream)?>(service: Arc<S>, handler: F) -> Arc<Last>
        where
            S: Send + Sync + 'static,
            F: Fn(Arc<S>, Request<$request_type>) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<Response<$response_type>, Status>> + Send + 'static,
            Req: Message,
            Res: Message,
            $($stream: Stream<Item = Result<Res, Status>> + Send + 'static,)?
        {
            let handler = Arc::new(handler);
            Arc::new(move |$call| {
                let (service, handler) = (Arc::clone(&service), Arc::clone(&handler));
                Box::pin(async move {
                    let request = $request;
                    Ok(handler(service, request).await?.map($messages))
                })
            })
        }
    };
}

innermost_function!(one_to_one<>: Req => Res; |call| one_request(call).await?, Messages::one);
innermost_function!(many_to_one<>: Streaming<Req> => Res; |call| streaming_request(call), Messages::one);
innermost_function!(one_to_many<St>: Req => St; |call| one_request(call).await?, Messages::stream);
innermost_function!(many_to_many<St>: Streaming<Req> => St; |call| streaming_request(call), Messages::stream);
