//! Names and HTTP statuses of codes.

use http::StatusCode;
use thalweg_engine::Code;

/// gRPC codes with their Connect names and HTTP statuses ("Error Codes").
const CODES: [(Code, &str, u16); 16] = [
    (Code::Cancelled, "canceled", 499),
    (Code::Unknown, "unknown", 500),
    (Code::InvalidArgument, "invalid_argument", 400),
    (Code::DeadlineExceeded, "deadline_exceeded", 504),
    (Code::NotFound, "not_found", 404),
    (Code::AlreadyExists, "already_exists", 409),
    (Code::PermissionDenied, "permission_denied", 403),
    (Code::ResourceExhausted, "resource_exhausted", 429),
    (Code::FailedPrecondition, "failed_precondition", 400),
    (Code::Aborted, "aborted", 409),
    (Code::OutOfRange, "out_of_range", 400),
    (Code::Unimplemented, "unimplemented", 501),
    (Code::Internal, "internal", 500),
    (Code::Unavailable, "unavailable", 503),
    (Code::DataLoss, "data_loss", 500),
    (Code::Unauthenticated, "unauthenticated", 401),
];

/// Returns Connect's name of a code. OK, which no failure should have, has none and becomes `unknown`.
pub fn code_name(code: Code) -> &'static str {
    entry(code).1
}

/// Returns the code with this name.
pub fn code_from_name(name: &str) -> Option<Code> {
    CODES.iter().find(|entry| entry.1 == name).map(|entry| entry.0)
}

/// Returns the HTTP status of a unary call that failed with this code.
pub fn http_status(code: Code) -> StatusCode {
    StatusCode::from_u16(entry(code).2).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn entry(code: Code) -> &'static (Code, &'static str, u16) {
    CODES.iter().find(|entry| entry.0 == code).unwrap_or(&CODES[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_names_and_statuses() {
        let check = |code, name, status: u16| {
            assert_eq!((code_name(code), http_status(code).as_u16()), (name, status));
        };
        check(Code::Cancelled, "canceled", 499);
        check(Code::Unknown, "unknown", 500);
        check(Code::InvalidArgument, "invalid_argument", 400);
        check(Code::DeadlineExceeded, "deadline_exceeded", 504);
        check(Code::NotFound, "not_found", 404);
        check(Code::AlreadyExists, "already_exists", 409);
        check(Code::PermissionDenied, "permission_denied", 403);
        check(Code::ResourceExhausted, "resource_exhausted", 429);
        check(Code::FailedPrecondition, "failed_precondition", 400);
        check(Code::Aborted, "aborted", 409);
        check(Code::OutOfRange, "out_of_range", 400);
        check(Code::Unimplemented, "unimplemented", 501);
        check(Code::Internal, "internal", 500);
        check(Code::Unavailable, "unavailable", 503);
        check(Code::DataLoss, "data_loss", 500);
        check(Code::Unauthenticated, "unauthenticated", 401);
        // No failure has this code.
        check(Code::Ok, "unknown", 500);
        for number in 1..=16 {
            let code = Code::from_number(number);
            assert_eq!(code_from_name(code_name(code)), Some(code));
        }
        for name in ["", "ok", "cancelled", "Canceled", "NOT_FOUND", "code_17"] {
            assert_eq!(code_from_name(name), None, "{name}");
        }
    }
}
