//! gRPC's use of HTTP/2 fields and DATA, as pure functions without socket, task or clock.
//!
//! The rules are those of [PROTOCOL-HTTP2], one noun per file.
//!
//! [PROTOCOL-HTTP2]: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md

pub(crate) mod code;
pub(crate) mod codec;
pub(crate) mod compression;
pub(crate) mod content_type;
pub(crate) mod envelope;
pub(crate) mod header_cache;
pub(crate) mod metadata;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod status;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod timeout;
pub(crate) mod user_agent;
