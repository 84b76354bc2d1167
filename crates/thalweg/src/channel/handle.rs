//! A handle to a gRPC target: [`Channel`].

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use thalweg_core::metadata::MetadataMap;
use thalweg_core::{Extensions, Request, Response, Status};
use thalweg_engine::inventory::ChannelSnapshot;
use thalweg_engine::{
    self as engine, CallOptions, ConnectivityState, Exchange, LaneSnapshot, Method, Pack, ServerAddress,
    Source,
};

use crate::codec::{self, BorrowedMessage, OwnedMessage, RequestMessage};
use crate::interceptor::CallType;
use crate::message::Message;
use crate::outbound::{self, OutboundMessages};
use crate::streaming::Streaming;
#[cfg(feature = "web")]
use crate::web_channel;

/// A handle to a gRPC target. Cheap to clone; clones share its connections.
///
/// A channel has one or more *lanes*, each with its own connection to a server; a call takes one with few calls in
/// flight. By default all lanes lead to one server; a [balancing policy](super::ChannelBuilder::load_balancing) spreads
/// the calls over all servers of the target.
///
/// The channel connects when the first call needs it ([`connect_lazy`](super::ChannelBuilder::connect_lazy)) or at once
/// ([`connect`](super::ChannelBuilder::connect)). It reconnects broken connections with gRPC's exponential backoff.
/// Meanwhile calls fail with UNAVAILABLE, or wait if they ask for it
/// ([`CallOptions::wait_for_ready`](crate::CallOptions)).
///
/// Dropping the last clone closes the connections once their calls have finished.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let channel = thalweg::Channel::builder("localhost:50051").connect().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Channel {
    pub(super) engine: engine::Channel,
    /// Client for protocols other than gRPC.
    #[cfg(feature = "web")]
    pub(super) web: Option<thalweg_web::client::Client>,
}

impl Channel {
    /// Returns the default options of calls; see [`ChannelBuilder`](super::ChannelBuilder::call_options).
    pub fn call_options(&self) -> &CallOptions {
        self.engine.call_options()
    }

    /// Returns the server this channel connects to, as named by the target.
    pub fn server(&self) -> &ServerAddress {
        self.engine.server()
    }

    pub(crate) fn shared_server(&self) -> Arc<ServerAddress> {
        Arc::clone(self.engine.server())
    }

    /// Returns the connectivity state of the channel: READY if a server is connected.
    pub fn state(&self) -> ConnectivityState {
        self.engine.state()
    }

    /// Retries a failed connection at once and restarts the [backoff](super::ChannelBuilder::connect_backoff). For
    /// programs that know that the network is available again. Calls that [wait](CallOptions::wait_for_ready) use the
    /// new connection.
    pub fn reset_connect_backoff(&self) {
        self.engine.reset_connect_backoff();
    }

    /// Returns the current lanes in the order in which they were opened, followed by those that are closing.
    pub fn lanes(&self) -> Vec<LaneSnapshot> {
        self.engine.lanes()
    }

    /// Returns the channel as [`inventory::channels`](crate::inventory::channels) lists it: its lanes and their calls,
    /// also by peer.
    pub fn snapshot(&self) -> ChannelSnapshot {
        self.engine.snapshot()
    }

    /// Returns the number of calls that wait because no lane has a free stream (the server's
    /// SETTINGS_MAX_CONCURRENT_STREAMS).
    pub fn waiting(&self) -> usize {
        self.engine.waiting()
    }

    /// Returns the underlying engine channel, for tests that open and close its lanes.
    #[cfg(feature = "testing")]
    pub fn engine(&self) -> &engine::Channel {
        &self.engine
    }

    /// Calls a unary method.
    ///
    /// # Errors
    /// The call's status if it is not OK: from the server, or for example UNAVAILABLE without a connection.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call, including on the server.
    // Not an `async fn`, which would store the request twice.
    #[expect(clippy::manual_async_fn, reason = "saves 50 instructions per call")]
    pub fn unary<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<Res>, Status>> + Send {
        async move {
            #[cfg(feature = "web")]
            if let Some(client) = &self.web {
                let metadata = request.metadata().as_ref();
                let configured = self.engine.call_options_of(method, metadata, options).await;
                let options = configured.as_deref().unwrap_or(options);
                return Box::pin(web_channel::unary(client, method, request, options)).await;
            }
            let (metadata, message) = (request.metadata().as_ref(), RequestMessage(&request));
            let mut response = self.engine.unary(method, metadata, &message, options).await?;
            // Responses are large: creating it here avoids moving it from future to future.
            match codec::decode_only(response.message()) {
                Ok(message) => {
                    let metadata = MetadataMap::from_headers(response.finish());
                    Ok(Response::from_parts(metadata, message, Extensions::default()))
                }
                Err(status) => Err(response.fail(status, &self.engine, method)),
            }
        }
    }

    /// Calls a client-streaming method: sends the requests as flow control permits, then returns the response.
    ///
    /// # Errors
    /// Same as [`unary`](Self::unary).
    ///
    /// # Cancel safety
    /// Same as [`unary`](Self::unary).
    pub async fn client_streaming<S, Res>(
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
        let (metadata, _, source) = request.into_parts();
        let (requests, kind) = (Requests(OutboundMessages::new(source)), CallType::ClientStreaming);
        let (call, headers) = self.exchange(method, &metadata, requests, kind, options).await?;
        let (message, metadata) = call.only_response(headers).await?;
        Ok(Response::from_parts(MetadataMap::from_headers(metadata), message, Extensions::default()))
    }

    /// Calls a server-streaming method; returns when the response headers have arrived.
    ///
    /// # Errors
    /// Same as [`unary`](Self::unary). Later errors come from the returned [`Streaming`].
    ///
    /// # Cancel safety
    /// Dropping the future, or the returned [`Streaming`] before its end, cancels the call, including on the server.
    pub async fn server_streaming<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> Result<Response<Streaming<Res>>, Status> {
        let (metadata, _, message) = request.into_parts();
        let requests = Requests(OutboundMessages::new(Once(Some(message))));
        self.responses(method, &metadata, requests, CallType::ServerStreaming, options).await
    }

    /// Calls a bidirectional method; returns when the response headers have arrived. Requests are sent before and after
    /// that, as flow control permits.
    ///
    /// # Errors
    /// Same as [`server_streaming`](Self::server_streaming).
    ///
    /// # Cancel safety
    /// Same as [`server_streaming`](Self::server_streaming).
    pub async fn bidi_streaming<S, Res>(
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
        let (metadata, _, source) = request.into_parts();
        let requests = Requests(OutboundMessages::new(source));
        self.responses(method, &metadata, requests, CallType::BidiStreaming, options).await
    }

    async fn responses<S, Res>(
        &self,
        method: &Method,
        metadata: &MetadataMap,
        requests: Requests<S>,
        kind: CallType,
        options: &CallOptions,
    ) -> Result<Response<Streaming<Res>>, Status>
    where
        S: Stream + Send + 'static,
        S::Item: Message,
        Res: Message,
    {
        let (call, metadata) = self.exchange(method, metadata, requests, kind, options).await?;
        let metadata = MetadataMap::from_headers(metadata);
        Ok(Response::from_parts(metadata, call.into_responses(), Extensions::default()))
    }

    /// Starts a call that is not unary and waits for the response headers; returns their metadata.
    pub(crate) async fn exchange<R: Source + Send + 'static>(
        &self,
        method: &Method,
        metadata: &MetadataMap,
        requests: R,
        kind: CallType,
        options: &CallOptions,
    ) -> Result<(StartedCall<R>, http::HeaderMap), Status> {
        #[cfg(feature = "web")]
        if let Some(client) = &self.web {
            let configured = self.engine.call_options_of(method, metadata.as_ref(), options).await;
            let options = configured.as_deref().unwrap_or(options);
            let stream = web_channel::stream(client, method, metadata, requests, kind, options);
            let (metadata, responses) = Box::pin(stream).await?;
            return Ok((StartedCall::Web(responses), metadata));
        }
        // gRPC treats all call types alike.
        let _ = kind;
        let call = self.engine.stream(method, metadata.as_ref(), requests, options).await;
        call.map(|(exchange, metadata)| (StartedCall::Grpc(exchange), metadata))
    }
}

/// A call in progress that is not unary.
#[cfg_attr(feature = "web", expect(clippy::large_enum_variant, reason = "gRPC calls need no box"))]
pub(crate) enum StartedCall<R> {
    Grpc(Exchange<R>),
    #[cfg(feature = "web")]
    Web(Box<thalweg_web::client::Responses>),
}

impl<R: Source + Send + 'static> StartedCall<R> {
    /// Returns the only response and the metadata of headers and trailers; `headers` is the metadata of the headers.
    pub(crate) async fn only_response<Res: Message>(
        self,
        mut headers: http::HeaderMap,
    ) -> Result<(Res, http::HeaderMap), Status> {
        let outcome = match self {
            Self::Grpc(exchange) => exchange
                .only_response(codec::decode)
                .await
                .map_err(|status| status.prepend_metadata(&headers)),
            #[cfg(feature = "web")]
            Self::Web(responses) => web_channel::only_response(responses, &headers).await,
        };
        let (message, trailers) = outcome?;
        headers.extend(trailers);
        Ok((message, headers))
    }

    /// Returns the responses; requests continue to be sent meanwhile.
    pub(crate) fn into_responses<Res: Message>(self) -> Streaming<Res> {
        match self {
            Self::Grpc(exchange) => Streaming::new(exchange.into_responses()),
            #[cfg(feature = "web")]
            Self::Web(responses) => web_channel::responses(responses),
        }
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.engine.fmt(f)
    }
}

/// A client's requests as an engine source. They never fail.
struct Requests<S: Stream>(OutboundMessages<S, outbound::Requests<S::Item>>);

impl<S: Stream<Item: Message>> Stream for Requests<S> {
    type Item = Result<OwnedMessage<S::Item>, Status>;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(cx).map(|item| item.map(|message| Ok(OwnedMessage(message))))
    }
}

impl<S: Stream<Item: Message>> Source for Requests<S> {
    type Message = OwnedMessage<S::Item>;

    fn poll_fill(&mut self, cx: &mut Context<'_>, pack: &mut Pack) -> Poll<Result<(), Status>> {
        let stream = match &mut self.0 {
            OutboundMessages::Stream(stream) => stream,
            OutboundMessages::Lending(lending) => return lending.poll_fill(cx, pack),
        };
        while !pack.is_full() {
            match stream.as_mut().poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(message)) => pack.push(&BorrowedMessage(&message)),
            };
        }
        Poll::Pending
    }
}

/// A stream of one message.
struct Once<T>(Option<T>);

impl<T> Unpin for Once<T> {}

impl<T> Stream for Once<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        Poll::Ready(self.0.take())
    }
}
