//! Status codes of calls that ended without one: from the HTTP status, or from a reset of the stream.

use thalweg_http2::ErrorCode;

use crate::status::Code;

/// Returns the code for a response without `grpc-status`, by its HTTP status ([http-grpc-status-mapping]).
///
/// This includes 200: a gRPC server would have sent `grpc-status`.
///
/// [http-grpc-status-mapping]: https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md
pub fn from_http_status(status: u16) -> Code {
    match status {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502 | 503 | 504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}

/// Returns the code of a call whose stream was reset (PROTOCOL-HTTP2, "Errors").
///
/// The document leaves `STREAM_CLOSED` and `HTTP_1_1_REQUIRED` open; they are INTERNAL, as in grpc-go.
pub(crate) fn from_error_code(error: ErrorCode) -> Code {
    match error {
        ErrorCode::NoError
        | ErrorCode::ProtocolError
        | ErrorCode::InternalError
        | ErrorCode::FlowControlError
        | ErrorCode::SettingsTimeout
        | ErrorCode::StreamClosed
        | ErrorCode::FrameSizeError
        | ErrorCode::CompressionError
        | ErrorCode::ConnectError
        | ErrorCode::Http11Required => Code::Internal,
        ErrorCode::RefusedStream => Code::Unavailable,
        ErrorCode::Cancel => Code::Cancelled,
        ErrorCode::EnhanceYourCalm => Code::ResourceExhausted,
        ErrorCode::InadequateSecurity => Code::PermissionDenied,
        ErrorCode::Unknown(_) => Code::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_statuses() {
        let check = |status: u16, code: Code| assert_eq!(from_http_status(status), code, "{status}");
        check(400, Code::Internal);
        check(401, Code::Unauthenticated);
        check(403, Code::PermissionDenied);
        check(404, Code::Unimplemented);
        for status in [429, 502, 503, 504] {
            check(status, Code::Unavailable);
        }
        for status in [0, 200, 204, 301, 405, 415, 500, 501, 65_535] {
            check(status, Code::Unknown);
        }
    }

    #[test]
    fn resets() {
        let check = |error: ErrorCode, code: Code| assert_eq!(from_error_code(error), code, "{error:?}");
        check(ErrorCode::RefusedStream, Code::Unavailable);
        check(ErrorCode::Cancel, Code::Cancelled);
        check(ErrorCode::EnhanceYourCalm, Code::ResourceExhausted);
        check(ErrorCode::InadequateSecurity, Code::PermissionDenied);
        check(ErrorCode::NoError, Code::Internal);
        check(ErrorCode::Http11Required, Code::Internal);
        check(ErrorCode::Unknown(99), Code::Unknown);
    }
}
