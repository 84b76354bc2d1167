//! Arguments of calls.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use thalweg_engine::Method;

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
