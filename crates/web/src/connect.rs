//! [Connect](https://connectrpc.com/docs/protocol): calls as plain requests of HTTP, and streams of envelopes.
//!
//! A server reads a request with [`read_request`], and answers with [`Answering`]. A client writes it with [`Call`],
//! and reads the answer with [`UnaryAnswer::read`] or [`read_answer`].
//!
//! | call | request | answer |
//! |---|---|---|
//! | unary | POST, or GET with the message in the query | HTTP's status, the message or the error as JSON |
//! | with streams | POST of `application/connect+…`, envelopes | 200, envelopes; the last says how it ended |

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
