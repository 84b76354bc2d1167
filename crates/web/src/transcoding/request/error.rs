//! Requests that are none.

use http::StatusCode;
use thalweg_engine::{Code, Status};
use thalweg_protobuf::json::ParseError;
use thiserror::Error;

use crate::compression::SIZE_OPTION;

/// A request that is none of the method's: 400.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A part of the path that is no value of its variable.
    #[error("path: {variable}: {problem}")]
    Variable {
        /// As the template has it.
        variable: String,
        /// What is wrong.
        problem: String,
    },
    /// A parameter that is no value of its field.
    #[error("parameter `{name}`: {problem}")]
    Parameter {
        /// As the request has it.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// A query with too many of them.
    #[error("more than {max} parameters")]
    TooManyParameters {
        /// The bound.
        max: usize,
    },
    /// A body that is not the message, or field, that it should be.
    #[error("body: {0}")]
    Body(#[from] ParseError),
    /// A body where there is none.
    #[error("this method takes no body")]
    UnexpectedBody,
}

impl RequestError {
    /// 400, or 413 for a message that is longer than [`ParseOptions::len_max`](thalweg_protobuf::json::ParseOptions).
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
