//! gRPC's status codes, and sets of them.

use std::fmt;

/// gRPC's [status codes], with their wire numbers.
///
/// [status codes]: https://github.com/grpc/grpc/blob/master/doc/statuscodes.md
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "documented in the gRPC specification")]
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
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

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of status codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodeSet(u32);

impl CodeSet {
    /// Returns whether the set contains `code`.
    pub fn contains(self, code: Code) -> bool {
        self.0 & (1 << code.number()) != 0
    }

    /// Adds `code`.
    pub fn insert(&mut self, code: Code) {
        self.0 |= 1 << code.number();
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Returns the number on the wire.
impl From<Code> for i32 {
    fn from(code: Code) -> Self {
        code as Self
    }
}

/// Collects codes of any crate that numbers them as gRPC does. Other numbers are UNKNOWN.
impl<C: Into<i32>> FromIterator<C> for CodeSet {
    fn from_iter<I: IntoIterator<Item = C>>(codes: I) -> Self {
        let mut set = Self::default();
        for code in codes {
            set.insert(Code::from_number(u32::try_from(code.into()).unwrap_or(u32::MAX)));
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_wire_numbers() {
        for (number, code) in (0..).zip(Code::ALL) {
            assert_eq!((Code::from_number(number), u32::from(code.number())), (code, number));
        }
        assert_eq!(Code::from_number(17), Code::Unknown);
        assert_eq!(Code::from_number(u32::MAX), Code::Unknown);
    }

    #[test]
    fn set_contains_what_was_inserted() {
        let set: CodeSet = [Code::Unavailable, Code::Cancelled].into_iter().collect();
        let contained: Vec<Code> = Code::ALL.into_iter().filter(|&code| set.contains(code)).collect();
        assert_eq!(contained, [Code::Cancelled, Code::Unavailable]);
        assert!(CodeSet::default().is_empty() && !set.is_empty());
    }
}
