//! Server side: listening sockets, the endpoint of each connection, and the execution of calls.
//!
//! An API layer provides the methods ([`Router`]), unary handlers ([`UnaryHandler`]) and streaming handlers
//! ([`StreamingHandler`]). Non-gRPC requests are passed to a fallback ([`Fallback`]) verbatim. [`LocalCalls`] are calls
//! without a connection.

mod acceptor;
mod connections;
mod deadline;
mod dispatch;
mod draining;
mod endpoint;
mod exchange;
mod fallback;
mod first_bytes;
mod handler_cost;
#[cfg(feature = "tls")]
mod handshakes;
mod http1;
mod http_error_response;
mod local;
mod maintenance;
mod memory;
mod prefixed_stream;
mod raw;
mod respond;
mod routing;
mod runner;
mod serve;
mod task;
#[cfg(feature = "opentelemetry")]
mod traced;
mod traced_message;
mod unary;

pub use connections::servers;
pub(crate) use connections::socket;
pub use dispatch::{Handler, Router, ServerMethod, StreamingHandler};
pub use draining::Draining;
pub use exchange::{LocalResponse, StreamingCall};
pub use fallback::Fallback;
pub use handler_cost::HandlerCost;
pub use http1::{ByteStream, Http1, Http1Admission, Http1Connection, Http1Request, Http1Requests};
pub use local::{LocalCalls, LocalStream, LocalUnary};
pub use raw::RawHandler;
pub use respond::MessageResponse;
pub use serve::{
    BindError, BoundServer, ServeError, ServerConfig, bind, serve_connection, serve_incoming, serve_routed,
};
#[cfg(feature = "opentelemetry")]
pub use traced::Traced;
pub use unary::UnaryHandler;
