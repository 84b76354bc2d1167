//! Header names with a meaning in gRPC.

use http::HeaderName;

pub(crate) const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
pub(crate) const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
pub(crate) const GRPC_MESSAGE_TYPE: HeaderName = HeaderName::from_static("grpc-message-type");
pub(crate) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
