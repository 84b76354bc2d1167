//! [Connect](https://connectrpc.com/docs/protocol): calls as plain HTTP requests, and streams of envelopes.
//!
//! Servers read a request with [`read_request`] and respond with [`ResponseFormat`]. Clients write it with [`Call`] and
//! read the response with [`UnaryResponse::read`] or [`read_response`].
//!
//! | call | request | response |
//! |---|---|---|
//! | unary | POST, or GET with the message in the query | an HTTP status, with the message or the error as JSON |
//! | streaming | POST of `application/connect+…`, envelopes | 200, envelopes; the last has the outcome |

mod code;
mod error;
mod names;
mod query;
mod request;
mod response;
mod stream_response;
pub(crate) mod timeout;

pub use code::{code_from_name, code_name, http_status};
pub use error::{DetailJson, ToJson};
pub(crate) use request::is_get;
pub use request::{Call, Refusal, RequestHead, Rules, Shape, read_request};
pub use response::{ResponseFormat, UnaryResponse};
pub use stream_response::read_response;
