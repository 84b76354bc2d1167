//! [gRPC-Web](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md): gRPC messages in a body, followed by the
//! trailers in an envelope. In text mode the whole body is Base64.
//!
//! Servers read a request with [`read_request`] and an [envelope reader](crate::envelope::Reader), and respond with
//! [`Answering`]. Clients write it with [`Call`] and read the response with [`read_answer`].
//!
//! Binary metadata is Base64 in text mode too. The specification omits that, but a value could then end its line.

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
