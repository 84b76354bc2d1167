//! gRPC over HTTP/2 at the level of headers, message bytes and trailers.
//!
//! Most programs use `thalweg` or `thalweg-tonic`, which are built on this crate. It provides connections over sockets,
//! the endpoints and lanes of a channel, the server endpoint, draining and limits. It does not depend on message types:
//! metadata is an [`http::HeaderMap`], sent messages implement [`Encode`], and received messages are bytes
//! ([`Payload`]).
//!
//! A unary call with an encoded message:
//!
//! ```no_run
//! use http::HeaderMap;
//! use thalweg_engine::{CallOptions, Channel, ChannelConfig, Encode, Method};
//!
//! struct Encoded(&'static [u8]);
//!
//! impl Encode for Encoded {
//!     fn encoded_len(&self) -> usize {
//!         self.0.len()
//!     }
//!
//!     fn encode(&self, out: &mut Vec<u8>) {
//!         out.extend_from_slice(self.0);
//!     }
//! }
//!
//! static SAY_HELLO: Method = Method::new("/helloworld.Greeter/SayHello");
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let channel = Channel::new("localhost:50051", ChannelConfig::default())?;
//! let (metadata, name, options) = (HeaderMap::new(), Encoded(b"\x0a\x03Ada"), CallOptions::default());
//! let mut response = channel.unary(&SAY_HELLO, &metadata, &name, &options).await?;
//! let len = response.message().open()?.as_bytes().len();
//! let metadata = response.finish();
//! println!("{len} bytes, with {metadata:?}");
//! # Ok(()) }
//! ```
//!
//! # Path of a unary request through the server
//!
//! 1. `connection/driver/read.rs`: reads into the thread's buffer and handles the protocol's events.
//! 2. `server/endpoint.rs`: routes the header block (cached for identical ones) and turns the message into a ready
//!    call.
//! 3. `server/dispatch.rs`: runs the calls made ready by one read, grouped by method.
//! 4. `server/unary.rs`: the API layer's handler decodes the message from the buffer and is polled at once.
//! 5. `server/respond.rs`: writes headers, message and trailers to the output, in one operation where possible.
//! 6. `connection/driver.rs`: sends all responses with one write.
//!
//! [`LocalCalls`](server::LocalCalls) run the same handlers within the server's process, without a connection:
//! `server/local/`.
//!
//! # Path of a unary call through the client
//!
//! 1. `calls/unary.rs`: starts the call.
//! 2. `calls/prepared.rs`: prepares the parts that all attempts share; the fixed request headers are cached.
//! 3. `calls/attempts.rs`: chooses a connection. If the channel has several endpoints, `endpoints/views.rs` picks one
//!    by the balancing policy's last decision; `lanes/set.rs` picks one of its lanes.
//! 4. `calls/opening.rs`: opens a stream for `calls/unary_attempt.rs`, if one is free, under the connection's lock.
//! 5. `connection/outgoing.rs`: encodes the message directly into the connection's output.
//! 6. `connection/driver.rs`: writes; later reads and handles the protocol's events.
//! 7. `lanes/endpoint.rs`: stores headers, message and trailers in the call's slot and wakes the caller.
//! 8. `calls/retries.rs`: decides whether a failed call is sent again. With hedging, `calls/hedging.rs` makes several
//!    attempts at the same time, those of calls with a request stream by `connection/substream.rs`.
//!
//! `endpoints/control.rs` is the task of a channel over several endpoints. It resolves the target by `resolver.rs`, and
//! publishes a picker whenever an endpoint's state changes.

#[cfg(not(unix))]
compile_error!("thalweg-engine supports Unix targets only");

mod bounded_time;
mod buffers;
mod byte_streams;
mod call_context;
mod call_peer;
mod calls;
mod channel;
mod connection;
mod connection_info;
mod destination;
#[cfg(feature = "dns")]
mod dns_resolver;
mod encode;
mod endpoint_origin;
mod endpoint_settings;
mod endpoints;
mod event_log;
mod executor;
mod fnv;
mod grpc;
pub mod inventory;
mod lanes;
mod measure;
mod memory_budget;
mod method;
mod net;
mod options;
mod pace;
mod per_thread;
mod proxy;
mod random;
pub mod raw;
mod registry;
mod request_headers;
mod resolver;
mod scheduler;
pub mod server;
mod server_address;
mod service_config_source;
mod service_settings;
mod snapshot;
mod status;
#[cfg(feature = "tls")]
pub mod tls;
pub mod wire;

pub use thalweg_balance::retry::{HedgingPolicy, RetryPolicy};
pub use thalweg_balance::service_config::{self, ServiceConfig, ServiceConfigError};
pub use thalweg_balance::{Address, Backoff, CodeSet, ConnectivityState, Endpoint, Locality, policy};
#[cfg(feature = "gzip")]
pub use thalweg_core::compression::{BodyDecoder, BodyEncoder};
pub use thalweg_http2 as http2;

pub use buffers::compact;
pub use byte_streams::ByteStreams;
pub use call_peer::CallPeer;
pub use calls::{Exchange, UnaryResponse};
pub use channel::{Channel, ChannelConfig, LaneSnapshot};
pub use connection::{
    Incoming, Keepalive, KeepalivePolicy, LentMessage, Pack, RawBody, RequestAccounting, Source,
};
pub use connection_info::ConnectionInfo;
pub use destination::ConnectError;
#[cfg(feature = "dns")]
pub use dns_resolver::DnsResolver;
pub use encode::Encode;
pub use executor::ExecutorError;
pub use grpc::codec::{Envelope, Payload};
pub use grpc::compression::{Encoding, EncodingSet};
pub use grpc::envelope::Prefix;
pub use grpc::request::RequestHead;
pub use grpc::timeout::request_timeout;
pub use grpc::user_agent::InvalidUserAgent;
pub use lanes::{ByteStream, ConnectStep, Lanes, TargetError};
#[cfg(feature = "opentelemetry")]
pub use measure::{Metrics, Traces};
pub use method::{InvalidPath, Method};
pub use net::{InvalidAddress, ListenAddress, TcpKeepalive, TcpOptions};
pub use options::{COMPRESSION_THRESHOLD, CallOptions, MAX_DECODING_MESSAGE_SIZE, ServiceOptions};
pub use pace::Pace;
pub use proxy::{Proxy, ProxyConfig, ProxyError};
pub use resolver::{EndpointList, Resolution, ResolveError, Resolver, Resolving};
pub use scheduler::busy_poll_wasted;
#[cfg(feature = "testing")]
pub use scheduler::settle_alone;
pub use server_address::ServerAddress;
pub use service_config_source::ServiceConfigSource;
pub use status::{Code, Status};
pub use thalweg_core::chain::Chain;
