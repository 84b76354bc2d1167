//! Errors of failed connection attempts.

use std::{fmt, io};

use crate::status::{Code, Status};

/// Returns the error of a failed attempt to connect, with a hint.
pub(super) fn refused(endpoint: &impl fmt::Display, error: &io::Error) -> Status {
    let hint = match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => " (check that the server is running)",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => " (check the network route)",
        _ => "",
    };
    Status::local(Code::Unavailable, format!("failed to connect to {endpoint}: {error}{hint}"))
}
