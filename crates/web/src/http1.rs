//! HTTP/1.1: [`serve`] takes a connection, and answers its requests with a service.
//!
//! hyper reads and writes it. What is around hyper here:
//!
//! - **times**: each head, body and answer has its own ([`Http1Limits`]);
//! - **one reading**: a request whose end two readers could find in two places is refused, and its connection ended, so
//!   that nobody can hide a request behind another one (request smuggling). hyper forgives what RFC 9112 allows to
//!   forgive. Refused besides are: lines that end without CR, in heads as in chunks; `Content-Length` beside
//!   `Transfer-Encoding`, and more than one of either; any transfer coding but `chunked`; spaces behind a chunk's size;
//!   a request without exactly one `Host`; targets whose form is not their method's;
//! - **an end**: a service that fails in the middle of an answer cuts the connection, so that nobody takes what came
//!   for all of it; in HTTP/1.0 an answer of unknown length ends with its connection, and over TCP without TLS nothing
//!   else tells such a client.
//!
//! Requests of a connection are answered one after the other, in their order. A client that ends its connection cancels
//! what it has asked for: the service's future, and the answer's body, are dropped. That is seen as long as the
//! connection is read: not while requests, or a body that the service does not take, wait in it. Half a connection is
//! none: who ends its side before the answer is there gets none.
//!
//! There are no upgrades and no tunnels: `Upgrade` is passed over, and CONNECT refused.

mod answer;
mod framing;
mod guarded;
pub(crate) mod limits;
mod progress;
pub(crate) mod received_body;
mod request;
pub(crate) mod serve;
#[cfg(test)]
mod tests;
mod unsent;

pub use limits::Http1Limits;
pub use serve::serve;
