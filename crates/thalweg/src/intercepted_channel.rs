//! A channel with interceptors around it: [`InterceptedChannel`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use thalweg_core::metadata::MetadataMap;
use thalweg_core::{Extensions, Request, Response, Status};
use thalweg_engine::{CallOptions, Method, Source};

use crate::caller::Caller;
use crate::channel::Channel;
use crate::codec::OwnedMessage;
use crate::interceptor::{AnyMessage, BoxFuture, Call, CallType, Chain, Interceptor, Last, Messages, Reply};
use crate::message::Message;
use crate::streaming::Streaming;

/// A [`Channel`] with interceptors, created by [`Channel::with_interceptor`]. Generated clients accept it like a
/// channel.
#[derive(Clone, Debug)]
pub struct InterceptedChannel {
    channel: Channel,
    chain: Chain,
}

impl Channel {
    /// Returns this channel wrapped in an interceptor: calls made through the returned channel pass it.
    ///
    /// ```
    /// # fn example(channel: thalweg::Channel) {
    /// use thalweg::interceptor::{Call, Next, head};
    ///
    /// let channel = channel.with_interceptor(head(|mut request| {
    ///     request.metadata_mut().insert("x-tenant", "42".parse().unwrap());
    ///     Ok(request)
    /// }));
    /// # }
    /// ```
    pub fn with_interceptor(&self, interceptor: impl Interceptor) -> InterceptedChannel {
        InterceptedChannel::from(self.clone()).with_interceptor(interceptor)
    }
}

impl From<Channel> for InterceptedChannel {
    fn from(channel: Channel) -> Self {
        Self { channel, chain: Chain::default() }
    }
}

impl InterceptedChannel {
    /// Adds an interceptor around the present ones: it sees requests before them and responses after them.
    pub fn with_interceptor(self, interceptor: impl Interceptor) -> Self {
        let outer = Chain::default().with(interceptor.into_link().0);
        Self { channel: self.channel, chain: outer.with_all(&self.chain) }
    }

    /// Returns the inner channel.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Runs the leading interceptors that need only the request's metadata and extensions.
    fn run_head_functions<T>(&self, request: Request<T>) -> Result<Request<T>, Status> {
        let (metadata, extensions, message) = request.into_parts();
        let request = self.chain.run_head_functions(Request::from_parts(metadata, extensions, ()))?;
        Ok(request.map(|()| message))
    }

    /// Runs the interceptors that see messages, then `last` with the channel.
    fn run(
        &self,
        method: &Method,
        call_type: CallType,
        options: &CallOptions,
        request: Request<Messages>,
        last: impl Fn(Channel, Call) -> BoxFuture<Result<Reply, Status>> + Send + Sync + 'static,
    ) -> BoxFuture<Result<Reply, Status>> {
        let (method, options) = (Arc::new(method.clone()), Some(options.clone()));
        let call = Call::new(method, call_type, options, Some(self.channel.shared_server()), request);
        let channel = self.channel.clone();
        let last: Arc<Last> = Arc::new(move |call| last(channel.clone(), call));
        self.chain.run_after_head_functions(call, last)
    }
}

/// Sends a unary call after its interceptors.
fn unary<Res: Message>(channel: Channel, call: Call) -> BoxFuture<Result<Reply, Status>> {
    Box::pin(async move {
        let (method, options, request) = call.into_parts();
        let (metadata, extensions, messages) = request.into_parts();
        let request = Request::from_parts(metadata, extensions, messages.only().await?);
        let response =
            channel.unary::<AnyMessage, Res>(&method, request, &options.unwrap_or_default()).await?;
        Ok(response.map(Messages::one))
    })
}

/// Sends a call with a stream of requests and one response after its interceptors.
fn client_streaming<Res: Message>(channel: Channel, call: Call) -> BoxFuture<Result<Reply, Status>> {
    Box::pin(async move {
        let (method, options, request) = call.into_parts();
        let (metadata, _, messages) = request.into_parts();
        let options = options.unwrap_or_default();
        let (requests, kind) = (Requests(messages), CallType::ClientStreaming);
        let (started, headers) = channel.exchange(&method, &metadata, requests, kind, &options).await?;
        let (message, metadata) = started.only_response::<Res>(headers).await?;
        let metadata = MetadataMap::from_headers(metadata);
        Ok(Response::from_parts(metadata, Messages::one(message), Extensions::default()))
    })
}

/// Sends a call with a stream of responses after its interceptors.
fn bidi_streaming<Res: Message>(channel: Channel, call: Call) -> BoxFuture<Result<Reply, Status>> {
    Box::pin(async move {
        let kind = call.call_type();
        let (method, options, request) = call.into_parts();
        let (metadata, _, messages) = request.into_parts();
        let options = options.unwrap_or_default();
        let (started, metadata) =
            channel.exchange(&method, &metadata, Requests(messages), kind, &options).await?;
        let responses = Messages::received(started.into_responses::<Res>());
        let metadata = MetadataMap::from_headers(metadata);
        Ok(Response::from_parts(metadata, responses, Extensions::default()))
    })
}

/// Returns the only response of a call, in the caller's type.
async fn only<Res: Message>(response: Reply) -> Result<Response<Res>, Status> {
    let (metadata, messages, extensions) = response.into_parts();
    let message = messages.only().await?.into_message()?;
    Ok(Response::from_parts(metadata, message, extensions))
}

impl Caller for InterceptedChannel {
    fn call_options(&self) -> CallOptions {
        self.channel.call_options().clone()
    }

    async fn unary<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> Result<Response<Res>, Status> {
        let request = self.run_head_functions(request)?;
        if self.chain.has_only_head_functions() {
            return self.channel.unary(method, request, options).await;
        }
        let request = request.map(Messages::one);
        only(self.run(method, CallType::Unary, options, request, unary::<Res>).await?).await
    }

    async fn client_streaming<S, Res>(
        &self,
        method: &Method,
        request: Request<S>,
        options: &CallOptions,
    ) -> Result<Response<Res>, Status>
    where
        S: Stream + Send + 'static,
        S::Item: Message,
        Res: Message,
    {
        let request = self.run_head_functions(request)?;
        if self.chain.has_only_head_functions() {
            return self.channel.client_streaming(method, request, options).await;
        }
        let request = request.map(|stream| Messages::stream(Fallible(Box::pin(stream))));
        let kind = CallType::ClientStreaming;
        only(self.run(method, kind, options, request, client_streaming::<Res>).await?).await
    }

    async fn server_streaming<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> Result<Response<Streaming<Res>>, Status> {
        let request = self.run_head_functions(request)?;
        if self.chain.has_only_head_functions() {
            return self.channel.server_streaming(method, request, options).await;
        }
        let request = request.map(Messages::one);
        let kind = CallType::ServerStreaming;
        let response = self.run(method, kind, options, request, bidi_streaming::<Res>).await?;
        Ok(response.map(Messages::into_streaming))
    }

    async fn bidi_streaming<S, Res>(
        &self,
        method: &Method,
        request: Request<S>,
        options: &CallOptions,
    ) -> Result<Response<Streaming<Res>>, Status>
    where
        S: Stream + Send + 'static,
        S::Item: Message,
        Res: Message,
    {
        let request = self.run_head_functions(request)?;
        if self.chain.has_only_head_functions() {
            return self.channel.bidi_streaming(method, request, options).await;
        }
        let request = request.map(|stream| Messages::stream(Fallible(Box::pin(stream))));
        let kind = CallType::BidiStreaming;
        let response = self.run(method, kind, options, request, bidi_streaming::<Res>).await?;
        Ok(response.map(Messages::into_streaming))
    }
}

/// A stream of requests that never fail.
struct Fallible<S>(Pin<Box<S>>);

impl<S: Stream> Stream for Fallible<S> {
    type Item = Result<S::Item, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx).map(|item| item.map(Ok))
    }
}

/// Requests that passed the interceptors, as an engine source.
struct Requests(Messages);

impl Stream for Requests {
    type Item = Result<OwnedMessage<AnyMessage>, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let message = Pin::new(&mut self.0).poll_next(cx);
        message.map(|message| message.map(|result| result.map(OwnedMessage)))
    }
}

impl Source for Requests {
    type Message = OwnedMessage<AnyMessage>;
}
