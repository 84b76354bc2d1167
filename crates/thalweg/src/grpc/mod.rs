//! What gRPC puts into HTTP/2 fields and DATA, as pure functions: no socket, no task, no clock.
//!
//! The rules are those of [PROTOCOL-HTTP2]; one file has one of its nouns. Statuses, codes and metadata are tonic's own
//! types.
//!
//! [PROTOCOL-HTTP2]: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md

pub mod code;
pub mod codec;
pub mod compression;
pub mod content_type;
pub mod envelope;
pub mod metadata;
pub mod percent;
pub mod request;
pub mod response;
pub mod status;
pub mod timeout;
pub mod user_agent;

#[cfg(test)]
pub(crate) mod testing;
