//! gRPC client and server with their own HTTP/2 implementation.
//!
//! `thalweg-build` generates code from `.proto` files in `build.rs`. A server:
//!
//! ```ignore
//! thalweg::Server::builder()
//!     .add_service(GreeterServer::new(MyGreeter))
//!     .serve("127.0.0.1:50051".parse()?)
//!     .await?;
//! ```
//!
//! A client:
//!
//! ```ignore
//! let channel = thalweg::Channel::builder("localhost:50051").connect().await?;
//! let greeter = GreeterClient::new(channel);
//! let reply = greeter.say_hello(HelloRequest { name: "Ada".into() }).await?;
//! ```
//!
//! [`Request`], [`Response`], [`Status`], [`Code`] and [`metadata`] have tonic's names and methods; with the feature
//! `tonic`, `From` converts them from and to tonic's types.
//!
//! # Start here
//!
//! - [`Server`] and [`server::ServerBuilder`]: addresses, limits, keepalive, TLS, shutdown.
//! - [`Channel`] and [`channel::ChannelBuilder`]: targets, connections, timeouts, TLS.
//! - [`Streaming`]: received messages of a stream. [`outbound`]: ways to send them.
//! - [`interceptor`]: code around all calls of a client or a server.
//! - `docs/tutorial.md` in the repository: a first service, step by step.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `prost` (default) | prost messages |
//! | `tls` | TLS with rustls and aws-lc-rs; needs a C compiler |
//! | `tls-webpki-roots` | Mozilla's root certificates, compiled in |
//! | `web` | Connect, gRPC-Web and JSON on the same port |
//! | `tonic` | conversions from and to tonic's types |
//! | `tower` | tower layers as interceptors |
//! | `opentelemetry` | metrics and traces |
//! | `buffa` | buffa messages, optionally as zero-copy views |
//! | `zstd`, `brotli` | more compression; gzip and deflate are always included; `zstd` needs a C compiler |
//! | `testing` | hooks for deterministic tests; may change in any release |
//!
//! # Without generated code
//!
//! [`server::Methods`] takes functions, and a [`Channel`] calls any [`Method`]:
//!
//! ```
//! use std::sync::Arc;
//!
//! use thalweg::server::{Methods, Service};
//! use thalweg::{CallOptions, Channel, Method, Raw, Request, Response, Server, ServiceOptions, Status};
//!
//! struct Echo;
//!
//! impl Service for Echo {
//!     const NAME: &'static str = "demo.Echo";
//!
//!     fn register(self, methods: &mut Methods<'_>) {
//!         methods.unary("Say", &Arc::new(self), &ServiceOptions::default(), say);
//!     }
//! }
//!
//! /// Messages are raw bytes here; any `prost::Message` works too.
//! async fn say(_: Arc<Echo>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
//!     Ok(Response::new(request.into_inner()))
//! }
//!
//! static SAY: Method = Method::new("/demo.Echo/Say");
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder().add_service(Echo).bind(&["127.0.0.1:0".parse()?]).await?;
//! let channel = Channel::builder(server.local_addresses()[0].to_string()).connect_lazy()?;
//! tokio::spawn(server.serve());
//!
//! let request = Request::new(Raw("hello".into()));
//! let response: Response<Raw> = channel.unary(&SAY, request, &CallOptions::default()).await?;
//! assert_eq!(response.into_inner(), Raw("hello".into()));
//! # Ok(()) }
//! ```

#[cfg(feature = "buffa")]
mod buffa_message;
mod caller;
pub mod channel;
pub mod codec;
mod deadline;
mod intercepted_channel;
pub mod interceptor;
mod message;
pub mod outbound;
mod parent;
pub mod server;
mod streaming;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(feature = "web")]
mod web_channel;

#[cfg(feature = "buffa")]
pub use buffa;
pub use bytes;
pub use futures_core::Stream;
#[cfg(feature = "prost")]
pub use prost;
pub use thalweg_core::metadata;
pub use thalweg_core::{Code, Extensions, IntoRequest, IntoStreamingRequest, Request, Response, Status};
#[cfg(feature = "web")]
pub use thalweg_web as web;

#[cfg(feature = "buffa")]
pub use buffa_message::View;
pub use caller::Caller;
pub use channel::Channel;
pub use codec::Uncompressed;
pub use deadline::Deadline;
pub use intercepted_channel::InterceptedChannel;
pub use message::{DecodeError, Message, Raw};
pub use parent::{ChildCaller, Parent, ParentGuard};
pub use server::Server;
pub use streaming::Streaming;
/// ```
/// use opentelemetry::metrics::MeterProvider;
/// use thalweg::{Channel, Metrics, Server};
///
/// fn measured(provider: &dyn MeterProvider) -> Result<Channel, thalweg::channel::ConnectError> {
///     let metrics = Metrics::new(provider);
///     let _server = Server::builder().metrics(metrics.clone());
///     Channel::builder("localhost:50051").metrics(metrics).connect_lazy()
/// }
/// ```
#[cfg(feature = "opentelemetry")]
pub use thalweg_engine::Metrics;
/// ```
/// use opentelemetry_sdk::propagation::TraceContextPropagator;
/// use opentelemetry_sdk::trace::SdkTracerProvider;
/// use thalweg::{Channel, Server, Traces};
///
/// fn traced(provider: &SdkTracerProvider) -> Result<Channel, thalweg::channel::ConnectError> {
///     let traces = Traces::new(provider, TraceContextPropagator::new());
///     let _server = Server::builder().traces(traces.clone());
///     Channel::builder("localhost:50051").traces(traces).connect_lazy()
/// }
/// ```
#[cfg(feature = "opentelemetry")]
pub use thalweg_engine::Traces;
#[cfg(feature = "testing")]
pub use thalweg_engine::settle_alone;
pub use thalweg_engine::{
    COMPRESSION_THRESHOLD, CallOptions, CallPeer, Chain, ConnectionInfo, Encoding, EncodingSet,
    ExecutorError, InvalidAddress, InvalidPath, Keepalive, KeepalivePolicy, ListenAddress,
    MAX_DECODING_MESSAGE_SIZE, Method, ServerAddress, ServiceOptions, TcpKeepalive, inventory,
};
#[cfg(feature = "web")]
pub use web_channel::Protocol;

/// HTTP/2 (RFC 9113) settings of connections: [`ChannelBuilder::http2`](channel::ChannelBuilder::http2) and
/// [`ServerBuilder::http2`](server::ServerBuilder::http2).
pub mod http2 {
    pub use thalweg_engine::http2::{Config, Limits, PingPolicy};
}

/// Includes the code that `thalweg-build` generated for a `.proto` package, like tonic's macro of the same name.
///
/// ```ignore
/// pub mod hello {
///     thalweg::include_proto!("helloworld");
/// }
/// ```
#[macro_export]
macro_rules! include_proto {
    ($package:tt) => {
        include!(concat!(env!("OUT_DIR"), "/", $package, ".rs"));
    };
}

/// Includes a descriptor set that the build script wrote to `OUT_DIR/NAME.bin`, as a `&'static [u8]` for server
/// reflection. Like tonic's macro of the same name.
///
/// ```ignore
/// // build.rs
/// let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
/// thalweg_build::configure()
///     .file_descriptor_set_path(out.join("hello.bin"))
///     .compile_protos(&["proto/hello.proto"], &["proto"])?;
///
/// // the program
/// const DESCRIPTORS: &[u8] = thalweg::include_file_descriptor_set!("hello");
/// ```
#[macro_export]
macro_rules! include_file_descriptor_set {
    ($name:tt) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bin")) as &'static [u8]
    };
}
