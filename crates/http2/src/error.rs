//! Errors: their scope (connection, stream, operation), initiator, code and cause.

use std::fmt;

use crate::violation::Violation;

/// An error code of RFC 9113 §7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Graceful, without an error.
    NoError,
    /// A protocol violation without a more specific code.
    ProtocolError,
    /// An error of the endpoint itself.
    InternalError,
    /// A window was exceeded.
    FlowControlError,
    /// SETTINGS were not acknowledged in time.
    SettingsTimeout,
    /// A frame arrived on a half-closed or closed stream.
    StreamClosed,
    /// A frame had an invalid size.
    FrameSizeError,
    /// The stream was refused before the application saw it.
    RefusedStream,
    /// The stream is no longer needed.
    Cancel,
    /// The HPACK state is lost.
    CompressionError,
    /// The tunnel of a CONNECT failed.
    ConnectError,
    /// The peer's behaviour is too expensive.
    EnhanceYourCalm,
    /// The transport does not meet the required security.
    InadequateSecurity,
    /// The request must be made over HTTP/1.1.
    Http11Required,
    /// An unknown code, to be treated as `InternalError` (§7).
    Unknown(u32),
}

impl From<u32> for ErrorCode {
    fn from(code: u32) -> ErrorCode {
        match code {
            0x0 => ErrorCode::NoError,
            0x1 => ErrorCode::ProtocolError,
            0x2 => ErrorCode::InternalError,
            0x3 => ErrorCode::FlowControlError,
            0x4 => ErrorCode::SettingsTimeout,
            0x5 => ErrorCode::StreamClosed,
            0x6 => ErrorCode::FrameSizeError,
            0x7 => ErrorCode::RefusedStream,
            0x8 => ErrorCode::Cancel,
            0x9 => ErrorCode::CompressionError,
            0xa => ErrorCode::ConnectError,
            0xb => ErrorCode::EnhanceYourCalm,
            0xc => ErrorCode::InadequateSecurity,
            0xd => ErrorCode::Http11Required,
            other => ErrorCode::Unknown(other),
        }
    }
}

impl From<ErrorCode> for u32 {
    fn from(code: ErrorCode) -> u32 {
        match code {
            ErrorCode::NoError => 0x0,
            ErrorCode::ProtocolError => 0x1,
            ErrorCode::InternalError => 0x2,
            ErrorCode::FlowControlError => 0x3,
            ErrorCode::SettingsTimeout => 0x4,
            ErrorCode::StreamClosed => 0x5,
            ErrorCode::FrameSizeError => 0x6,
            ErrorCode::RefusedStream => 0x7,
            ErrorCode::Cancel => 0x8,
            ErrorCode::CompressionError => 0x9,
            ErrorCode::ConnectError => 0xa,
            ErrorCode::EnhanceYourCalm => 0xb,
            ErrorCode::InadequateSecurity => 0xc,
            ErrorCode::Http11Required => 0xd,
            ErrorCode::Unknown(other) => other,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorCode::NoError => "NO_ERROR",
            ErrorCode::ProtocolError => "PROTOCOL_ERROR",
            ErrorCode::InternalError => "INTERNAL_ERROR",
            ErrorCode::FlowControlError => "FLOW_CONTROL_ERROR",
            ErrorCode::SettingsTimeout => "SETTINGS_TIMEOUT",
            ErrorCode::StreamClosed => "STREAM_CLOSED",
            ErrorCode::FrameSizeError => "FRAME_SIZE_ERROR",
            ErrorCode::RefusedStream => "REFUSED_STREAM",
            ErrorCode::Cancel => "CANCEL",
            ErrorCode::CompressionError => "COMPRESSION_ERROR",
            ErrorCode::ConnectError => "CONNECT_ERROR",
            ErrorCode::EnhanceYourCalm => "ENHANCE_YOUR_CALM",
            ErrorCode::InadequateSecurity => "INADEQUATE_SECURITY",
            ErrorCode::Http11Required => "HTTP_1_1_REQUIRED",
            ErrorCode::Unknown(code) => return write!(f, "code {code:#x}"),
        })
    }
}

/// The endpoint that detected the error and reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Initiator {
    /// This endpoint.
    Local,
    /// The other endpoint.
    Peer,
}

impl fmt::Display for Initiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Initiator::Local => "this endpoint",
            Initiator::Peer => "the peer",
        })
    }
}

/// The connection is over.
///
/// If this endpoint detected the fault, its GOAWAY is already in the output: flush it, then close the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("HTTP/2 connection ended by {initiator} with {code}: {violation}")]
pub struct ConnectionError {
    /// The endpoint that ended the connection.
    pub initiator: Initiator,
    /// The code in the GOAWAY.
    pub code: ErrorCode,
    /// The cause.
    pub violation: Violation,
}

impl ConnectionError {
    /// A fault of the peer that this endpoint detected.
    pub(crate) const fn local(code: ErrorCode, violation: Violation) -> ConnectionError {
        ConnectionError { initiator: Initiator::Local, code, violation }
    }

    pub(crate) const fn protocol(violation: Violation) -> ConnectionError {
        ConnectionError::local(ErrorCode::ProtocolError, violation)
    }

    /// A frame with an invalid size.
    pub(crate) const fn wrong_size(violation: Violation) -> ConnectionError {
        ConnectionError::local(ErrorCode::FrameSizeError, violation)
    }

    /// The peer is too expensive.
    pub(crate) const fn calm(violation: Violation) -> ConnectionError {
        ConnectionError::local(ErrorCode::EnhanceYourCalm, violation)
    }
}

/// A fault of one stream, detected here. RST_STREAM is sent and the connection continues (RFC 9113 §5.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamError {
    pub(crate) code: ErrorCode,
    pub(crate) violation: Violation,
}

impl StreamError {
    pub(crate) const fn new(code: ErrorCode, violation: Violation) -> StreamError {
        StreamError { code, violation }
    }

    pub(crate) const fn protocol(violation: Violation) -> StreamError {
        StreamError::new(ErrorCode::ProtocolError, violation)
    }
}

/// A fault of the peer, with its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Connection(ConnectionError),
    Stream(StreamError),
}

impl From<ConnectionError> for Fault {
    fn from(error: ConnectionError) -> Fault {
        Fault::Connection(error)
    }
}

impl From<StreamError> for Fault {
    fn from(error: StreamError) -> Fault {
        Fault::Stream(error)
    }
}

/// The reason why a stream could not be opened. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The peer allows no more concurrent streams; wait for [`Event::StreamsFree`](crate::Event::StreamsFree).
    #[error("the peer allows no more concurrent streams; wait until one ends")]
    NoFreeStream,
    /// GOAWAY was sent or received; use another connection.
    #[error("the connection is going away; open the stream on another one")]
    GoingAway,
    /// All 2^30 stream identifiers are used; use another connection.
    #[error("the connection has used all its stream identifiers; open the stream on another one")]
    IdsExhausted,
    /// The connection is over.
    #[error("the connection is closed")]
    Closed,
    /// The headers are larger than the peer's SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113 §6.5.2), sizes in bytes.
    #[error("header list of {size} bytes exceeds the peer's limit of {size_max}")]
    HeadersTooLarge {
        /// Size of the headers as RFC 9113 counts it.
        size: usize,
        /// Maximum size that the peer accepts.
        size_max: usize,
    },
}

/// The reason why nothing could be sent on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The stream is closed or was reset.
    #[error("the stream is closed or was reset")]
    UnknownStream,
    /// END_STREAM was sent already, so the caller is at fault.
    #[error("END_STREAM was already sent on the stream; nothing can follow it")]
    HalfClosed,
    /// The connection is over.
    #[error("the connection is closed")]
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_round_trip() {
        for code in 0..64u32 {
            assert_eq!(u32::from(ErrorCode::from(code)), code);
        }
        assert_eq!(ErrorCode::from(0xb), ErrorCode::EnhanceYourCalm);
        assert_eq!(ErrorCode::from(0x2a).to_string(), "code 0x2a");
    }
}
