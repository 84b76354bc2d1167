//! A status as header fields: `grpc-status`, `grpc-message` and `grpc-status-details-bin`.

use base64::Engine;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::Status;
use crate::metadata::{BASE64, MetadataMap};
use crate::{Code, percent};

/// The name of the field with the code.
pub const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// The name of the field with the message.
pub const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// The name of the field with the details.
pub const GRPC_STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

impl Status {
    /// The same name in tonic.
    #[doc(hidden)]
    pub const GRPC_STATUS: HeaderName = GRPC_STATUS;
    /// The same name in tonic.
    #[doc(hidden)]
    pub const GRPC_MESSAGE: HeaderName = GRPC_MESSAGE;
    /// The same name in tonic.
    #[doc(hidden)]
    pub const GRPC_STATUS_DETAILS: HeaderName = GRPC_STATUS_DETAILS;

    pub(super) fn read_fields(headers: &HeaderMap) -> Option<Self> {
        let code = Code::from_bytes(headers.get(GRPC_STATUS)?.as_bytes());
        let value = |name| headers.get(name).map_or(&[][..], HeaderValue::as_bytes);
        let message = percent::decode(value(GRPC_MESSAGE)).into_owned();
        let details = BASE64.decode(value(GRPC_STATUS_DETAILS)).unwrap_or_default();
        let mut metadata = headers.clone();
        for name in [GRPC_STATUS, GRPC_MESSAGE, GRPC_STATUS_DETAILS] {
            metadata.remove(name);
        }
        let metadata = MetadataMap::from_headers(metadata);
        Some(Self::with_details_and_metadata(code, message, details.into(), metadata))
    }

    pub(crate) fn write_fields(&self, headers: &mut HeaderMap) {
        headers.extend(self.metadata().clone().into_sanitized_headers());
        headers.insert(GRPC_STATUS, HeaderValue::from(u16::from(self.code().number())));
        if !self.message().is_empty() {
            headers.insert(GRPC_MESSAGE, value(percent::encode(self.message()).into_owned()));
        }
        if !self.details().is_empty() {
            headers.insert(GRPC_STATUS_DETAILS, value(BASE64.encode(self.details()).into()));
        }
    }
}

fn value(visible: Vec<u8>) -> HeaderValue {
    HeaderValue::from_maybe_shared(Bytes::from(visible)).expect("percent coding and Base64 are visible ASCII")
}

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
    let message =
        format!("the server responded with HTTP status {} and no grpc-status", http_status.as_u16());
    let mut status = Status::new(code_of_http(http_status.as_u16()), message);
    if let Some(trailers) = trailers {
        *status.metadata_mut() = MetadataMap::from_headers(trailers.clone());
    }
    Err(Some(status))
}

/// Returns the code for a response without `grpc-status`, by its HTTP status ([http-grpc-status-mapping]).
///
/// [http-grpc-status-mapping]: https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md
pub fn code_of_http(status: u16) -> Code {
    match status {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502 | 503 | 504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}
