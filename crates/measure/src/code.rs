//! Names of gRPC status codes.

/// Canonical names of the gRPC status codes, indexed by number.
pub const CODE_NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];
/// Index of `UNKNOWN` in [`CODE_NAMES`].
pub const CODE_UNKNOWN: usize = 2;

/// Returns the canonical name of a gRPC status code (`status.code() as i32`), such as `UNAVAILABLE`. Undefined codes
/// return `UNKNOWN`.
pub fn code_name(code: i32) -> &'static str {
    let index = usize::try_from(code).ok().filter(|&index| index < CODE_NAMES.len());
    CODE_NAMES[index.unwrap_or(CODE_UNKNOWN)]
}
