//! [gRPC-Web](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md): gRPC messages in a body, followed by the
//! trailers in an envelope. In text mode the whole body is Base64.
//!
//! Servers read a request with [`read_request`] and an [envelope reader](crate::envelope::EnvelopeReader), and respond
//! with
//! [`ResponseFormat`]. Clients write it with [`Call`] and read the response with [`read_response`].
//!
//! Binary metadata is Base64 in text mode too. The specification omits that, but a value could then end its line.

mod content_type;
mod parts;
mod request;
mod response;
pub(crate) mod text;
mod trailers;

pub use content_type::ContentType;
pub(crate) use parts::put_message;
pub use request::{Call, Refusal, RequestHead, Rules, read_request};
pub use response::{ResponseFormat, read_response};
