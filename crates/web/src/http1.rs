//! HTTP/1.1: [`serve`] handles a connection's requests with a service.
//!
//! hyper reads and writes messages. This module adds:
//!
//! - **timeouts** for each head, body and response ([`Http1Limits`]);
//! - **strict framing** against request smuggling: a request whose end is ambiguous is refused and its connection
//!   closed. hyper is as lenient as RFC 9112 allows. Refused as well: lines that end without CR, in heads and chunks;
//!   `Content-Length` with `Transfer-Encoding`, or more than one of either; transfer codings except `chunked`; spaces
//!   after a chunk size; requests without exactly one `Host`; targets in a form that does not fit the method;
//! - **truncation**: a service that fails during a response cuts the connection, so that clients notice. In HTTP/1.0 a
//!   response of unknown length ends with its connection, so clients without TLS cannot notice.
//!
//! Requests of a connection are handled one at a time, in order. A client that closes its connection cancels its
//! request: the service's future and the response body are dropped. The close is detected only while the connection is
//! read, not while pipelined requests or unread body data wait in it. A client that closes only its sending side before
//! the response gets none.
//!
//! Upgrades and tunnels are not supported: `Upgrade` is ignored, and CONNECT is refused.

mod framing;
pub(crate) mod limits;
mod progress;
pub(crate) mod received_body;
mod request;
mod response;
pub(crate) mod serve;
mod strict_io;
#[cfg(test)]
mod tests;
mod unsent;

pub use limits::Http1Limits;
pub use serve::serve;
