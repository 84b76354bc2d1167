//! Status codes of calls whose stream was reset.

use thalweg_http2::ErrorCode;

use crate::status::Code;

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
