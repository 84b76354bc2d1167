//! gRPC's header and trailer fields as pure functions, for protocols that carry the same calls: gRPC-Web and Connect.

pub use crate::grpc::codec::{more_than_one_message, no_message};
pub use crate::grpc::metadata::{
    MetadataTooLarge, SENT_SIZE_MAX as METADATA_SIZE_MAX, is_written_by_transport,
    receive_from_other_protocol,
};
pub use crate::grpc::request::{Refusal, emit as emit_request, receive as receive_request};
pub use crate::grpc::response::{
    ResponseHeaders, emit_headers as emit_response, receive_headers as receive_response, receive_trailers,
    receive_trailers_only,
};
pub use crate::grpc::status::emit as emit_trailers;
