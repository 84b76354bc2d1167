//! [Connect](https://connectrpc.com/docs/protocol): calls as plain HTTP requests, and streams of envelopes.
//!
//! Servers read a request with [`read_request`] and respond with [`Answering`]. Clients write it with [`Call`] and read
//! the response with [`UnaryAnswer::read`] or [`read_answer`].
//!
//! | call | request | response |
//! |---|---|---|
//! | unary | POST, or GET with the message in the query | an HTTP status, with the message or the error as JSON |
//! | streaming | POST of `application/connect+…`, envelopes | 200, envelopes; the last has the outcome |

mod answer;
mod code;
mod error;
mod names;
mod query;
mod request;
mod stream;
pub(crate) mod timeout;

pub use answer::{Answering, UnaryAnswer};
pub use code::{code_from_name, code_name, http_status};
pub use error::{DetailJson, ToJson};
pub(crate) use request::is_get;
pub use request::{Call, Refusal, RequestHead, Rules, Shape, read_request};
pub use stream::read_answer;
