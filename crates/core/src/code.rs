//! gRPC's status codes.

use std::fmt;

/// gRPC's [status codes], with their wire numbers.
///
/// [status codes]: https://github.com/grpc/grpc/blob/master/doc/statuscodes.md
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The call succeeded.
    Ok = 0,
    /// The call was cancelled, usually by the caller.
    Cancelled = 1,
    /// An error without a known code.
    Unknown = 2,
    /// The request is invalid in any state of the server.
    InvalidArgument = 3,
    /// The deadline passed before the call ended.
    DeadlineExceeded = 4,
    /// A requested entity does not exist.
    NotFound = 5,
    /// The entity to be created exists.
    AlreadyExists = 6,
    /// The caller is known and may not make this call.
    PermissionDenied = 7,
    /// A quota, limit or memory is used up.
    ResourceExhausted = 8,
    /// The system is not in the state that the call needs; do not repeat it as it is.
    FailedPrecondition = 9,
    /// The call lost against a concurrent one; repeat the whole transaction.
    Aborted = 10,
    /// The request goes beyond the valid range in the present state.
    OutOfRange = 11,
    /// The method does not exist or is not enabled.
    Unimplemented = 12,
    /// An invariant is broken, or a peer violated the protocol.
    Internal = 13,
    /// The service cannot be reached now; the call may be repeated.
    Unavailable = 14,
    /// Data is lost or corrupted.
    DataLoss = 15,
    /// The caller has no valid credentials.
    Unauthenticated = 16,
}

impl Code {
    /// All codes, in the order of their numbers.
    pub const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// Returns the code with this number. Unknown numbers become UNKNOWN, since the peer may be newer.
    pub fn from_number(number: u32) -> Self {
        Self::ALL.get(number as usize).copied().unwrap_or(Self::Unknown)
    }

    /// Returns the code with this number, or UNKNOWN.
    pub const fn from_i32(number: i32) -> Self {
        if number >= 0 && number <= Self::Unauthenticated as i32 {
            Self::ALL[number as usize]
        } else {
            Self::Unknown
        }
    }

    /// Parses the value of `grpc-status`: one or two digits. Anything else is UNKNOWN.
    pub fn from_bytes(digits: &[u8]) -> Self {
        let digit = |byte: u8| byte.is_ascii_digit().then(|| i32::from(byte - b'0'));
        match *digits {
            [ones] => digit(ones).map_or(Self::Unknown, Self::from_i32),
            [b'1', ones] => digit(ones).map_or(Self::Unknown, |ones| Self::from_i32(10 + ones)),
            _ => Self::Unknown,
        }
    }

    /// Returns the code for a response without `grpc-status`, by its HTTP status ([http-grpc-status-mapping]).
    ///
    /// This includes 200: a gRPC server would have sent `grpc-status`.
    ///
    /// [http-grpc-status-mapping]: https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md
    pub fn from_http_status(status: u16) -> Self {
        match status {
            400 => Self::Internal,
            401 => Self::Unauthenticated,
            403 => Self::PermissionDenied,
            404 => Self::Unimplemented,
            429 | 502 | 503 | 504 => Self::Unavailable,
            _ => Self::Unknown,
        }
    }

    /// Returns what the code means.
    pub fn description(&self) -> &'static str {
        match self {
            Self::Ok => "success",
            Self::Cancelled => "the call was cancelled",
            Self::Unknown => "unknown error",
            Self::InvalidArgument => "the request is invalid",
            Self::DeadlineExceeded => "the deadline passed before the call ended",
            Self::NotFound => "a requested entity does not exist",
            Self::AlreadyExists => "the entity to be created exists already",
            Self::PermissionDenied => "the caller may not make this call",
            Self::ResourceExhausted => "a resource or quota is exhausted",
            Self::FailedPrecondition => "the system is not in the state that the call needs",
            Self::Aborted => "the call was aborted, usually by a concurrent one",
            Self::OutOfRange => "the request goes beyond the valid range",
            Self::Unimplemented => "the method is not implemented or not enabled",
            Self::Internal => "internal error",
            Self::Unavailable => "the service cannot be reached now",
            Self::DataLoss => "data is lost or corrupted",
            Self::Unauthenticated => "the caller has no valid credentials",
        }
    }

    /// Returns the number on the wire.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns gRPC's name, such as `OK` or `INVALID_ARGUMENT`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

/// Writes the [description](Code::description).
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description())
    }
}

impl From<i32> for Code {
    fn from(number: i32) -> Self {
        Self::from_i32(number)
    }
}

/// Returns the number on the wire.
impl From<Code> for i32 {
    fn from(code: Code) -> Self {
        code as Self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_wire_numbers() {
        for (number, code) in (0..).zip(Code::ALL) {
            assert_eq!(
                (Code::from_i32(number), i32::from(code), i32::from(code.number())),
                (code, number, number)
            );
            assert_eq!(Code::from_bytes(number.to_string().as_bytes()), code);
        }
        for number in [-1, 17, i32::MIN, i32::MAX] {
            assert_eq!((Code::from_i32(number), Code::from(number)), (Code::Unknown, Code::Unknown));
        }
        assert_eq!((Code::from_number(17), Code::from_number(u32::MAX)), (Code::Unknown, Code::Unknown));
        for digits in ["", "17", "00", "01", "a", "1a", "100", "-1", " 1"] {
            assert_eq!(Code::from_bytes(digits.as_bytes()), Code::Unknown, "{digits:?}");
        }
    }

    #[test]
    fn codes_of_http_statuses() {
        let check = |status: u16, code: Code| assert_eq!(Code::from_http_status(status), code, "{status}");
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
    fn codes_have_distinct_descriptions_and_names() {
        let texts = |text: fn(&Code) -> &'static str| {
            Code::ALL.iter().map(text).collect::<std::collections::HashSet<_>>()
        };
        assert_eq!(texts(Code::description).len(), 17);
        assert_eq!(texts(|code| code.name()).len(), 17);
        assert_eq!(Code::NotFound.to_string(), Code::NotFound.description());
    }
}
