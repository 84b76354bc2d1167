//! Arguments of calls.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use thalweg_core::Code;
use thalweg_engine::{CallOptions, Encoding, Method};

/// Compression of messages, by the numbers of grpcio's `Compression`.
const ENCODINGS: [Encoding; 3] = [Encoding::Identity, Encoding::Deflate, Encoding::Gzip];

/// Returns the method at `path`.
pub(crate) fn method(path: &str) -> PyResult<Arc<Method>> {
    Method::from_path(path).map(Arc::new).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Converts seconds to a timeout. No time is left if they are negative.
pub(crate) fn timeout(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    match seconds {
        None => Ok(None),
        Some(seconds) if seconds.is_nan() => Err(PyValueError::new_err("the timeout is not a number")),
        // Also infinite: no deadline.
        Some(seconds) => Ok(Duration::try_from_secs_f64(seconds.max(0.0)).ok()),
    }
}

/// Returns the number of a status code.
pub(crate) fn code(number: i32) -> PyResult<Code> {
    let code = Code::from_i32(number);
    if code as i32 == number {
        return Ok(code);
    }
    Err(PyValueError::new_err(format!("no status code has the number {number}")))
}

/// Returns the encoding of a member of `grpc.Compression`, or its number.
pub(crate) fn encoding(compression: &Bound<'_, PyAny>) -> PyResult<Encoding> {
    let number: usize = compression.extract().map_err(|_| {
        PyTypeError::new_err(format!("compression must be a grpc.Compression, not {}", type_name(compression)))
    })?;
    ENCODINGS.get(number).copied().ok_or_else(|| {
        PyValueError::new_err(format!("unknown compression {number}; use a member of grpc.Compression"))
    })
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "another type".to_owned(), |name| name.to_string())
}

/// Returns the options of one call, on top of those of its channel.
pub(crate) fn call_options(
    channel: &CallOptions,
    timeout_s: Option<f64>,
    wait_for_ready: Option<bool>,
    compression: Option<&Bound<'_, PyAny>>,
) -> PyResult<CallOptions> {
    let mut options = channel.clone();
    options.timeout = timeout(timeout_s)?;
    options.wait_for_ready = wait_for_ready;
    if let Some(compression) = compression.filter(|it| !it.is_none()) {
        options.send_compressed = Some(encoding(compression)?);
    }
    Ok(options)
}
