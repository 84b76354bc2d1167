//! Request errors.

use http::StatusCode;
use thalweg_engine::{Code, Status};
use thalweg_protobuf::json::ParseError;
use thiserror::Error;

use crate::compression::SIZE_OPTION;

/// An invalid request: 400.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A part of the path that is invalid for its variable.
    #[error("path: {variable}: {problem}")]
    Variable {
        /// The name in the template.
        variable: String,
        /// The problem.
        problem: String,
    },
    /// A parameter that is invalid for its field.
    #[error("parameter `{name}`: {problem}")]
    Parameter {
        /// The name in the request.
        name: String,
        /// The problem.
        problem: String,
    },
    /// A query with too many parameters.
    #[error("more than {max} parameters")]
    TooManyParameters {
        /// The limit.
        max: usize,
    },
    /// A body that is not valid JSON for the message or field.
    #[error("body: {0}")]
    Body(#[from] ParseError),
    /// A body for a method without one.
    #[error("this method accepts no body")]
    UnexpectedBody,
}

impl RequestError {
    /// Returns 400, or 413 for a message longer than [`ParseOptions::len_max`](thalweg_protobuf::json::ParseOptions).
    pub fn http_status(&self) -> StatusCode {
        match self {
            RequestError::Body(error) if error.is_too_long => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

impl From<RequestError> for Status {
    fn from(error: RequestError) -> Status {
        if error.http_status() == StatusCode::PAYLOAD_TOO_LARGE {
            return Status::new(Code::ResourceExhausted, format!("{error}: {SIZE_OPTION}"));
        }
        Status::new(Code::InvalidArgument, error.to_string())
    }
}
