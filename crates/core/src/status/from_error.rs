//! A status from any other error.

use std::error::Error;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use thiserror::Error;

use super::value::Status;
use crate::Code;
use crate::error::BoxError;

/// The time for a request passed.
#[derive(Debug, Error)]
#[error("Timeout expired")]
pub struct TimeoutExpired(pub ());

/// No connection could be made.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ConnectError(#[source] pub BoxError);

impl Status {
    /// Returns the status that an error is or that its sources have. Any other error is UNKNOWN with the error's text.
    ///
    /// The error becomes the source of the status, unless it is the status.
    pub fn from_error(error: BoxError) -> Self {
        Self::try_from_error(error).unwrap_or_else(|error| {
            let mut status = Self::unknown(error.to_string());
            status.set_source(Arc::from(error));
            status
        })
    }

    /// Returns the status that an error is or that its sources have.
    ///
    /// # Errors
    ///
    /// The same error if it has none.
    pub fn try_from_error(error: BoxError) -> Result<Self, BoxError> {
        let error = match error.downcast::<Self>() {
            Ok(status) => return Ok(*status),
            Err(error) => error,
        };
        #[cfg(feature = "h2")]
        let error = match error.downcast::<h2::Error>() {
            Ok(error) => return Ok((*error).into()),
            Err(error) => error,
        };
        match among_sources(&*error) {
            Some(mut status) => {
                status.set_source(Arc::from(error));
                Ok(status)
            }
            None => Err(error),
        }
    }
}

/// Returns the first error in the chain that stands for a status.
fn among_sources(error: &(dyn Error + 'static)) -> Option<Status> {
    let mut next = Some(error);
    let mut chain = std::iter::from_fn(|| {
        let error = next?;
        next = error.source();
        Some(error)
    });
    chain.find_map(|error| {
        if let Some(status) = error.downcast_ref::<Status>() {
            let (message, details) = (status.message(), Bytes::copy_from_slice(status.details()));
            let metadata = status.metadata().clone();
            Some(Status::with_details_and_metadata(status.code(), message, details, metadata))
        } else if error.is::<TimeoutExpired>() {
            Some(Status::cancelled(error.to_string()))
        } else if error.is::<ConnectError>() {
            Some(Status::unavailable(error.to_string()))
        } else {
            overloaded(error)
        }
    })
}

/// Returns the status of a call that a tower layer turned away.
fn overloaded(error: &(dyn Error + 'static)) -> Option<Status> {
    #[cfg(feature = "server")]
    if error.is::<tower::load_shed::error::Overloaded>() {
        return Some(Status::resource_exhausted("too many active requests"));
    }
    let _ = error;
    None
}

impl From<io::Error> for Status {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind;
        let code = match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::WouldBlock | ErrorKind::WriteZero | ErrorKind::Interrupted => {
                Code::Internal
            }
            ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::NotConnected
            | ErrorKind::AddrInUse
            | ErrorKind::AddrNotAvailable => Code::Unavailable,
            ErrorKind::AlreadyExists => Code::AlreadyExists,
            ErrorKind::ConnectionAborted => Code::Aborted,
            ErrorKind::InvalidData => Code::DataLoss,
            ErrorKind::InvalidInput => Code::InvalidArgument,
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::PermissionDenied => Code::PermissionDenied,
            ErrorKind::TimedOut => Code::DeadlineExceeded,
            ErrorKind::UnexpectedEof => Code::OutOfRange,
            _ => Code::Unknown,
        };
        Self::new(code, error.to_string())
    }
}

/// The code follows PROTOCOL-HTTP2, "Errors".
#[cfg(feature = "h2")]
impl From<h2::Error> for Status {
    fn from(error: h2::Error) -> Self {
        use h2::Reason;
        let code = match error.reason() {
            Some(
                Reason::NO_ERROR
                | Reason::PROTOCOL_ERROR
                | Reason::INTERNAL_ERROR
                | Reason::FLOW_CONTROL_ERROR
                | Reason::SETTINGS_TIMEOUT
                | Reason::FRAME_SIZE_ERROR
                | Reason::COMPRESSION_ERROR
                | Reason::CONNECT_ERROR,
            ) => Code::Internal,
            Some(Reason::REFUSED_STREAM) => Code::Unavailable,
            Some(Reason::CANCEL) => Code::Cancelled,
            Some(Reason::ENHANCE_YOUR_CALM) => Code::ResourceExhausted,
            Some(Reason::INADEQUATE_SECURITY) => Code::PermissionDenied,
            _ => Code::Unknown,
        };
        let mut status = Self::new(code, format!("HTTP/2 error: {error}"));
        status.set_source(Arc::new(error));
        status
    }
}

#[cfg(feature = "h2")]
impl From<Status> for h2::Error {
    fn from(status: Status) -> Self {
        let is_cancelled = status.code() == Code::Cancelled;
        if is_cancelled { h2::Reason::CANCEL } else { h2::Reason::INTERNAL_ERROR }.into()
    }
}
