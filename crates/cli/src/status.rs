//! Statuses of failed calls.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use thalweg::prost::DecodeError;
use thalweg::{Code, Status};
use thalweg_dynamic::Detail;
use thalweg_measure::code::code_name;
use thalweg_protobuf::printable;

/// Offset of exit codes for statuses, to keep them apart from other failures.
const EXIT_CODE_BASE: u8 = 64;

/// Returns the exit code for a status.
pub(crate) fn exit_code(code: Code) -> u8 {
    match code {
        Code::Ok => 0,
        code => EXIT_CODE_BASE + code as u8,
    }
}

/// Returns the status on one line, and a line with JSON for each detail.
pub(crate) fn described(status: &Status, details: Result<Vec<Detail>, DecodeError>) -> String {
    let code = status.code() as i32;
    let mut text = format!("{} ({code})", code_name(code));
    if !status.message().is_empty() {
        text.push_str(": ");
        text.push_str(&printable::line(status.message()));
    }
    if let Ok(details) = details {
        for detail in details {
            text.push_str("\n  detail: ");
            text.push_str(&printable::line(&detail.to_string()));
        }
    } else {
        text.push_str("\n  details (not a google.rpc.Status): ");
        text.push_str(&BASE64_STANDARD.encode(status.details()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_an_exit_code() {
        assert_eq!((exit_code(Code::Ok), exit_code(Code::Cancelled), exit_code(Code::Internal)), (0, 65, 77));
    }
}
