//! gRPC channels: [`Channel`].

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use futures_core::Stream;
use thalweg_engine::{
    self as engine, CallOptions, ChannelConfig, Encoding, Exchange, Keepalive, Method, Pack, ServerAddress,
    Source,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Request, Response, Status};

use crate::codec::{self, Asked, Lent, Owned};
use crate::interceptor::CallType;
use crate::message::Message;
use crate::outbound::{self, Given};
use crate::status::to_tonic;
use crate::streaming::Streaming;
#[cfg(feature = "web")]
use crate::web_channel::{self, Protocol, WebOptions};

pub use thalweg_engine::{
    Backoff, ConnectError, ConnectStep, LaneSnapshot, Lanes, ServiceConfigError, TargetError,
};

/// A handle to a gRPC target. Cheap to clone; clones share its connections.
///
/// A channel has one or more *lanes*, each with its own connection; a call takes the less loaded of two lanes. The
/// channel connects when the first call needs it ([`ChannelBuilder::connect_lazy`]) or at once
/// ([`ChannelBuilder::connect`]). It reconnects broken connections with gRPC's exponential backoff. Meanwhile calls
/// fail with UNAVAILABLE, or wait if they ask for it ([`CallOptions::wait_for_ready`](crate::CallOptions)).
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
    engine: engine::Channel,
    /// Client for protocols other than gRPC.
    #[cfg(feature = "web")]
    web: Option<thalweg_web::client::Client>,
}

/// Builder of a [`Channel`]; see [`Channel::builder`].
#[derive(Clone, Debug)]
pub struct ChannelBuilder {
    target: String,
    config: ChannelConfig,
    #[cfg(feature = "web")]
    web: WebOptions,
}

impl Channel {
    /// Returns a builder for a channel to `target`, a [gRPC target URI]: `host:port`, `dns:///host:port`,
    /// `ipv4:1.2.3.4:80`, `ipv6:[::1]:80`, `unix:/path` or `unix-abstract:name`. `https://host:port` connects over TLS.
    ///
    /// [gRPC target URI]: https://github.com/grpc/grpc/blob/master/doc/naming.md
    pub fn builder(target: impl Into<String>) -> ChannelBuilder {
        ChannelBuilder {
            target: target.into(),
            config: ChannelConfig::default(),
            #[cfg(feature = "web")]
            web: WebOptions::default(),
        }
    }

    /// Returns the default options of calls, set with [`ChannelBuilder::call_options`].
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

    /// Retries a failed connection at once and restarts the backoff ([`ChannelBuilder::connect_backoff`]). For programs
    /// that know that the network is available again. Calls that [wait](CallOptions::wait_for_ready) use the new
    /// connection.
    pub fn reset_connect_backoff(&self) {
        self.engine.reset_connect_backoff();
    }

    /// Returns the current lanes in the order in which they were opened, followed by those that are closing.
    pub fn lanes(&self) -> Vec<LaneSnapshot> {
        self.engine.lanes()
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
    /// Dropping the future cancels the call, also at the server.
    pub async fn unary<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> Result<Response<Res>, Status> {
        #[cfg(feature = "web")]
        if let Some(client) = &self.web {
            return Box::pin(web_channel::unary(client, method, request, options)).await;
        }
        let (metadata, message) = (request.metadata().as_ref(), Asked(&request));
        let mut reply = match self.engine.unary(method, metadata, &message, options).await {
            Ok(reply) => reply,
            Err(status) => return Err(to_tonic(status)),
        };
        // Responses are large: creating it here avoids moving it from future to future.
        match codec::decode_only(reply.message()) {
            Ok(message) => {
                let metadata = MetadataMap::from_headers(reply.finish());
                Ok(Response::from_parts(metadata, message, Extensions::default()))
            }
            Err(status) => Err(to_tonic(reply.fail(status, &self.engine, method))),
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
        let (requests, kind) = (Requests(Given::new(source)), CallType::ClientStreaming);
        let (begun, head) = self.exchange(method, &metadata, requests, kind, options).await?;
        let (message, metadata) = begun.only_response(head).await?;
        Ok(Response::from_parts(MetadataMap::from_headers(metadata), message, Extensions::default()))
    }

    /// Calls a server-streaming method; returns when the response headers have arrived.
    ///
    /// # Errors
    /// Same as [`unary`](Self::unary). Later errors come from the returned [`Streaming`].
    ///
    /// # Cancel safety
    /// Dropping the future, or the returned [`Streaming`] before its end, cancels the call, also at the server.
    pub async fn server_streaming<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> Result<Response<Streaming<Res>>, Status> {
        let (metadata, _, message) = request.into_parts();
        let requests = Requests(Given::new(Once(Some(message))));
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
        let requests = Requests(Given::new(source));
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
        let (begun, metadata) = self.exchange(method, metadata, requests, kind, options).await?;
        let metadata = MetadataMap::from_headers(metadata);
        Ok(Response::from_parts(metadata, begun.into_responses(), Extensions::default()))
    }

    /// Starts a call that is not unary and waits for the response headers; returns their metadata.
    pub(crate) async fn exchange<R: Source + Send + 'static>(
        &self,
        method: &Method,
        metadata: &MetadataMap,
        requests: R,
        kind: CallType,
        options: &CallOptions,
    ) -> Result<(Begun<R>, http::HeaderMap), Status> {
        #[cfg(feature = "web")]
        if let Some(client) = &self.web {
            let stream = web_channel::stream(client, method, metadata, requests, kind, options);
            let (metadata, responses) = Box::pin(stream).await?;
            return Ok((Begun::Web(responses), metadata));
        }
        // gRPC treats all call types alike.
        let _ = kind;
        let begun = self.engine.stream(method, metadata.as_ref(), requests, options).await;
        begun.map(|(exchange, metadata)| (Begun::Grpc(exchange), metadata)).map_err(to_tonic)
    }
}

/// A call in progress that is not unary.
#[cfg_attr(feature = "web", expect(clippy::large_enum_variant, reason = "gRPC calls need no box"))]
pub(crate) enum Begun<R> {
    Grpc(Exchange<R>),
    #[cfg(feature = "web")]
    Web(Box<thalweg_web::client::Responses>),
}

impl<R: Source + Send + 'static> Begun<R> {
    /// Returns the only response and the metadata of headers and trailers; `head` is the metadata of the headers.
    pub(crate) async fn only_response<Res: Message>(
        self,
        mut head: http::HeaderMap,
    ) -> Result<(Res, http::HeaderMap), Status> {
        let outcome = match self {
            Self::Grpc(exchange) => {
                exchange.only_response(codec::decode).await.map_err(|status| status.prepend_metadata(&head))
            }
            #[cfg(feature = "web")]
            Self::Web(responses) => web_channel::only_response(responses, &head).await,
        };
        match outcome {
            Ok((message, trailers)) => {
                head.extend(trailers);
                Ok((message, head))
            }
            Err(status) => Err(to_tonic(status)),
        }
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
struct Requests<S: Stream>(Given<S, outbound::Requests<S::Item>>);

impl<S: Stream<Item: Message>> Stream for Requests<S> {
    type Item = Result<Owned<S::Item>, engine::Status>;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(cx).map(|item| item.map(|message| Ok(Owned(message))))
    }
}

impl<S: Stream<Item: Message>> Source for Requests<S> {
    type Message = Owned<S::Item>;

    fn poll_fill(&mut self, cx: &mut Context<'_>, pack: &mut Pack) -> Poll<Result<(), engine::Status>> {
        let stream = match &mut self.0 {
            Given::Stream(stream) => stream,
            Given::Lending(lending) => return lending.poll_fill(cx, pack),
        };
        while !pack.is_full() {
            match stream.as_mut().poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(message)) => pack.push(&Lent(&message)),
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

impl ChannelBuilder {
    /// Sets the number of connections, [`ChannelConfig::lanes`](engine::ChannelConfig::lanes); [`Lanes::adaptive`] by
    /// default.
    pub fn lanes(mut self, lanes: impl Into<Lanes>) -> Self {
        self.config.lanes = lanes.into();
        self
    }

    /// Sets a service config in JSON, [`ChannelConfig::service_config`](engine::ChannelConfig::service_config); none by
    /// default.
    ///
    /// ```
    /// # fn main() -> Result<(), thalweg::channel::ConnectError> {
    /// let config = r#"{ "connectionScaling": { "maxConnectionsPerSubchannel": 4 } }"#;
    /// let channel = thalweg::Channel::builder("localhost:50051").service_config(config).connect_lazy()?;
    /// # Ok(()) }
    /// ```
    pub fn service_config(mut self, json: impl Into<String>) -> Self {
        self.config.service_config = Some(json.into());
        self
    }

    /// Sets the time limit of one connection attempt,
    /// [`ChannelConfig::connect_timeout`](engine::ChannelConfig::connect_timeout); 20 s by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.config.connect_timeout = timeout;
        self
    }

    /// Sets the silence after which the kernel probes the server,
    /// [`TcpOptions::keepalive`](engine::TcpOptions::keepalive); off by default. [`keepalive`](Self::keepalive) sends
    /// HTTP/2 PINGs instead, which also detect a hung server or a proxy that lost it.
    pub fn tcp_keepalive(mut self, time: Duration) -> Self {
        self.config.tcp.keepalive = Some(time);
        self
    }

    /// Sets the time between two TCP keepalive probes,
    /// [`TcpOptions::keepalive_interval`](engine::TcpOptions::keepalive_interval); the system's by default.
    pub fn tcp_keepalive_interval(mut self, interval: Duration) -> Self {
        self.config.tcp.keepalive_interval = Some(interval);
        self
    }

    /// Sets the number of unacknowledged probes that end a connection,
    /// [`TcpOptions::keepalive_retries`](engine::TcpOptions::keepalive_retries); the system's by default.
    pub fn tcp_keepalive_retries(mut self, retries: u32) -> Self {
        self.config.tcp.keepalive_retries = Some(retries);
        self
    }

    /// Sets the local address to connect from, [`TcpOptions::local_address`](engine::TcpOptions::local_address); the
    /// system's choice by default.
    pub fn local_address(mut self, address: IpAddr) -> Self {
        self.config.tcp.local_address = Some(address);
        self
    }

    /// Sets the time between failed connection attempts, [`ChannelConfig::backoff`](engine::ChannelConfig::backoff);
    /// gRPC's connection backoff by default.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use thalweg::{Channel, channel::Backoff};
    ///
    /// let backoff = Backoff::default().base_delay(Duration::from_millis(100)).max_delay(Duration::from_secs(5));
    /// let builder = Channel::builder("localhost:50051").connect_backoff(backoff);
    /// # drop(builder);
    /// ```
    pub fn connect_backoff(mut self, backoff: Backoff) -> Self {
        self.config.backoff = backoff;
        self
    }

    /// Sets the application's `name/version` in the user agent,
    /// [`ChannelConfig::user_agent`](engine::ChannelConfig::user_agent); empty by default.
    pub fn user_agent(mut self, application: impl Into<String>) -> Self {
        self.config.user_agent = application.into();
        self
    }

    /// Sets the `:authority` of calls, [`ChannelConfig::authority`](engine::ChannelConfig::authority); the target's by
    /// default.
    pub fn authority(mut self, authority: impl Into<String>) -> Self {
        self.config.authority = Some(authority.into());
        self
    }

    /// Sets the default options of generated clients: message limits, compression, deadline, and whether calls wait for
    /// a connection.
    pub fn call_options(mut self, options: CallOptions) -> Self {
        self.config.call_options = options;
        self
    }

    /// Compresses the messages of generated clients with `encoding`, unless the client overrides it; off by default.
    pub fn send_compressed(mut self, encoding: Encoding) -> Self {
        self.config.call_options.send_compressed = Some(encoding);
        self
    }

    /// Sets the protocol of calls; gRPC by default. Use Connect or gRPC-Web behind proxies that do not support
    /// trailers. Generated clients, deadlines, compression and limits work the same with each.
    ///
    /// ```
    /// use thalweg::{Channel, Protocol};
    ///
    /// # fn main() -> Result<(), thalweg::channel::ConnectError> {
    /// let channel = Channel::builder("https://shop.example").protocol(Protocol::Connect).http1(true).connect_lazy()?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "web")]
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.web.protocol = protocol;
        self
    }

    /// Sends calls over HTTP/1.1 instead of HTTP/2, each on a connection of its own while it runs; off by default. gRPC
    /// needs HTTP/2: with it, [`connect_lazy`](Self::connect_lazy) fails with [`ConnectError::Protocol`].
    ///
    /// Bidirectional calls need HTTP/2 and end with UNIMPLEMENTED at once, as in connect-go's client. Of the connection
    /// settings, only the connect timeout, the TCP options, the connector and TLS apply.
    /// [`http1_options`](Self::http1_options) sets the number of connections.
    #[cfg(feature = "web")]
    pub fn http1(mut self, is_http1: bool) -> Self {
        self.web.http1 = is_http1.then(|| self.web.http1.unwrap_or_default());
        self
    }

    /// Sends calls over HTTP/1.1, like [`http1`](Self::http1), with these limits on the connections.
    #[cfg(feature = "web")]
    pub fn http1_options(mut self, options: thalweg_web::client::Http1Options) -> Self {
        self.web.http1 = Some(options);
        self
    }

    /// Sends Connect's unary calls of methods [without side effects](Method::without_side_effects) as GET, so that
    /// intermediaries can cache responses. Off by default, because it puts messages into URLs.
    #[cfg(feature = "web")]
    pub fn get(mut self, uses_get: bool) -> Self {
        self.web.uses_get = uses_get;
        self
    }

    /// Sets the HTTP/2 settings of the connections, [`ChannelConfig::http2`](engine::ChannelConfig::http2).
    pub fn http2(mut self, config: thalweg_engine::http2::Config) -> Self {
        self.config.http2 = config;
        self
    }

    /// Connects with `connect`, over any byte stream: an in-memory pipe in a test, a tunnel. The target is then used
    /// only as the server's name (`:authority`). `connect` is called once per lane, and again when a connection breaks.
    ///
    /// ```
    /// # use thalweg::{Channel, Server};
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let channel = Channel::builder("memory:1")
    ///     .connector(|| async {
    ///         let (client, server) = tokio::io::duplex(64 * 1024);
    ///         tokio::spawn(Server::builder().serve_connection(server));
    ///         Ok(client)
    ///     })
    ///     .connect()
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn connector<F, Fut, IO>(mut self, connect: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<IO>> + Send + 'static,
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.config.set_connector(connect);
        self
    }

    /// Calls `watch` after each step of a connection attempt, to see where the time of a first call goes. `watch` runs
    /// in the connecting task and must not block.
    ///
    /// ```
    /// use thalweg::Channel;
    ///
    /// let began = std::time::Instant::now();
    /// let builder = Channel::builder("https://localhost:50051")
    ///     .on_connect_step(move |step| eprintln!("{:?}: {step:?}", began.elapsed()));
    /// # drop(builder);
    /// ```
    pub fn on_connect_step(mut self, watch: impl Fn(ConnectStep) + Send + Sync + 'static) -> Self {
        self.config.set_step_watcher(watch);
        self
    }

    /// Sets when the channel sends PINGs to a silent server,
    /// [`ChannelConfig::keepalive`](engine::ChannelConfig::keepalive); never by default.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use thalweg::{Channel, Keepalive};
    ///
    /// let keepalive = Keepalive::every(Duration::from_secs(30)).timeout(Duration::from_secs(5));
    /// let builder = Channel::builder("localhost:50051").keepalive(keepalive);
    /// # drop(builder);
    /// ```
    pub fn keepalive(mut self, keepalive: Keepalive) -> Self {
        self.config.keepalive = Some(keepalive);
        self
    }

    /// Closes connections that had no call for this time,
    /// [`ChannelConfig::idle_timeout`](engine::ChannelConfig::idle_timeout); off by default.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.config.idle_timeout = Some(timeout);
        self
    }

    /// Sets how long an idle connection busy-polls before it sleeps,
    /// [`ChannelConfig::busy_poll`](engine::ChannelConfig::busy_poll). Adaptive by default, up to 30 µs.
    pub fn busy_poll(mut self, duration: Duration) -> Self {
        self.config.busy_poll = Some(duration);
        self
    }

    /// Runs the connections on `count` threads of the channel's own,
    /// [`ChannelConfig::threads`](engine::ChannelConfig::threads); on the caller's runtime by default.
    pub fn threads(mut self, count: usize) -> Self {
        self.config.threads = Some(count);
        self
    }

    /// Pins the [`threads`](Self::threads) to these processors, [`ChannelConfig::cpus`](engine::ChannelConfig::cpus);
    /// none by default.
    pub fn pin(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        self.config.cpus = cpus.into_iter().collect();
        self
    }

    /// Connects over TLS. Targets that begin with `https://` use TLS with
    /// [`ClientTlsConfig::new`](crate::tls::ClientTlsConfig::new) even without this call.
    ///
    /// [`connect`](Self::connect) and [`connect_lazy`](Self::connect_lazy) return an error for an invalid
    /// configuration.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: crate::tls::ClientTlsConfig) -> Self {
        self.config.tls = Some(tls);
        self
    }

    /// Records metrics of calls, connections and lanes; off by default.
    #[cfg(feature = "opentelemetry")]
    pub fn metrics(mut self, metrics: thalweg_engine::Metrics) -> Self {
        self.config.set_metrics(metrics);
        self
    }

    /// Traces calls; off by default.
    #[cfg(feature = "opentelemetry")]
    pub fn traces(mut self, traces: thalweg_engine::Traces) -> Self {
        self.config.set_traces(traces);
        self
    }

    /// Sets the position, in 0..=1, of each backoff pause within its range of ±20 %; random by default. For simulations
    /// that must replay.
    #[cfg(feature = "testing")]
    pub fn backoff_jitter(mut self, unit: fn() -> f64) -> Self {
        self.config.set_backoff_jitter(unit);
        self
    }

    /// Builds the channel; it connects on the first call.
    ///
    /// # Errors
    /// Returns an error if the target, the authority, the user agent or the service config is invalid. Also fails if
    /// TLS cannot be set up or the channel's own [`threads`](Self::threads) cannot start. It does not check whether
    /// there is a server.
    pub fn connect_lazy(self) -> Result<Channel, ConnectError> {
        #[cfg(feature = "web")]
        let http1 = self.web.http1(&self.target, &self.config)?;
        let engine = engine::Channel::new(&self.target, self.config)?;
        Ok(Channel {
            #[cfg(feature = "web")]
            web: self.web.client(&engine, http1),
            engine,
        })
    }

    /// Builds the channel and waits until its initial lanes are connected.
    ///
    /// # Errors
    /// Returns the errors of [`connect_lazy`](Self::connect_lazy), and an error if no server answers over HTTP/2.
    pub async fn connect(self) -> Result<Channel, ConnectError> {
        let channel = self.connect_lazy()?;
        #[cfg(feature = "web")]
        if let Some(http1) = channel.web.as_ref().and_then(thalweg_web::client::Client::http1) {
            let connected = http1.connect().await;
            connected.map_err(|status| ConnectError::Unavailable(status.message().to_owned()))?;
            return Ok(channel);
        }
        channel.engine.connect().await?;
        Ok(channel)
    }
}
