//! Failures of steps and commands, and macros for them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a step or a command did not pass.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum Failure {
    /// The tested code is wrong, or a program failed.
    Failed(String),
    /// A requirement of the step is missing on this machine, so nothing was tested.
    Missing(String),
    /// Invalid command line; the message names the wrong part.
    Misuse(String),
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Creates a [`Failure::Failed`] with a message formatted as by `format!`.
macro_rules! failed {
    ($($text:tt)*) => { $crate::failure::Failure::Failed(format!($($text)*)) };
}

/// Creates a [`Failure::Missing`].
macro_rules! missing {
    ($($text:tt)*) => { $crate::failure::Failure::Missing(format!($($text)*)) };
}

/// Creates a [`Failure::Misuse`].
macro_rules! misuse {
    ($($text:tt)*) => { $crate::failure::Failure::Misuse(format!($($text)*)) };
}

/// Returns a [`Failure::Failed`].
macro_rules! bail {
    ($($text:tt)*) => { return Err(failed!($($text)*)) };
}

/// Returns a [`Failure::Failed`] unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)*) => { if !$condition { bail!($($text)*) } };
}

/// Returns `account` as success if `is_well`, else as failure.
pub(crate) fn verdict(is_well: bool, account: String) -> Result<String> {
    if is_well { Ok(account) } else { Err(Failure::Failed(account)) }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) | Self::Misuse(message) => formatter.write_str(message),
            Self::Missing(message) => write!(formatter, "not available here: {message}"),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
