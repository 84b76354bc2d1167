//! The outcome of a call without `grpc-status`.

use http::{HeaderMap, StatusCode};

use super::value::Status;
use crate::Code;
use crate::metadata::MetadataMap;

/// Returns the outcome of a call whose trailers, or headers without a body, are these.
///
/// Without `grpc-status` the HTTP status decides ([http-grpc-status-mapping]).
///
/// # Errors
///
/// The status of a failure, or nothing if both are missing: the response has HTTP status 200 and no `grpc-status`.
///
/// [http-grpc-status-mapping]: https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md
pub fn outcome(trailers: Option<&HeaderMap>, http_status: StatusCode) -> Result<(), Option<Status>> {
    if let Some(status) = trailers.and_then(Status::from_header_map) {
        return if status.code() == Code::Ok { Ok(()) } else { Err(Some(status)) };
    }
    if http_status == StatusCode::OK {
        return Err(None);
    }
    let mut status = missing(Some(http_status.as_u16()));
    if let Some(trailers) = trailers {
        *status.metadata_mut() = MetadataMap::from_headers(trailers.clone());
    }
    Err(Some(status))
}

/// Returns the status of a call that ended without `grpc-status`, by the HTTP status if the headers ended the stream.
pub fn missing(http_status: Option<u16>) -> Status {
    match http_status {
        None | Some(200) => Status::local(
            Code::Unknown,
            "the server ended the call without grpc-status (a proxy may have dropped the trailers)",
        ),
        Some(http_status) => Status::local(
            Code::from_http_status(http_status),
            format!("the server responded with HTTP status {http_status} and no grpc-status"),
        ),
    }
}
