//! [gRPC-Web](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md): gRPC's messages in a body, and its
//! trailers behind them in an envelope of their own. In text the whole body is Base64.
//!
//! A server reads a request with [`read_request`] and an [envelope reader](crate::envelope::Reader), and answers with
//! [`Answering`]. A client writes it with [`Call`], and reads the answer with [`read_answer`].
//!
//! Binary metadata is Base64 in text as well. The document would leave that out, but a value could then end its line.

mod answer;
mod content_type;
mod parts;
mod request;
pub(crate) mod text;
mod trailers;

pub use answer::{Answering, read_answer};
pub use content_type::ContentType;
pub(crate) use parts::put_message;
pub use request::{Call, Refusal, RequestHead, Rules, read_request};
