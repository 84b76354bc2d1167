//! How a call ended, for Python.

use bytes::Bytes;
use http::HeaderMap;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString, PyTuple};
use thalweg_core::{Code, Status};

use crate::metadata;

/// Trailing metadata with the details of a status, which grpcio's users read there.
pub(crate) const DETAILS: &str = "grpc-status-details-bin";

/// Text of a call that its caller has cancelled, as grpcio's.
pub(crate) const CANCELLED: &str = "Locally cancelled by application!";

/// Code, details, initial and trailing metadata of an ended call, for Python.
pub(crate) type Outcome = (Py<PyAny>, String, Py<PyTuple>, Py<PyTuple>);

/// The end of a call.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Code,
    pub(crate) details: String,
    pub(crate) initial_metadata: HeaderMap,
    pub(crate) trailing_metadata: HeaderMap,
    /// The only response of a call with one.
    pub(crate) response: Option<Bytes>,
    /// Cancelled by its caller.
    pub(crate) is_cancelled: bool,
}

impl Ended {
    pub(crate) fn ok(
        initial_metadata: HeaderMap,
        trailing_metadata: HeaderMap,
        response: Option<Bytes>,
    ) -> Self {
        let details = String::new();
        Self { code: Code::Ok, details, initial_metadata, trailing_metadata, response, is_cancelled: false }
    }

    #[cold]
    pub(crate) fn failed(status: &Status) -> Self {
        let (initial_metadata, mut trailing_metadata) = status.metadata_apart();
        if !status.details().is_empty() && !trailing_metadata.contains_key(DETAILS) {
            let value = thalweg_core::metadata::BinaryMetadataValue::from_bytes(status.details());
            if let Ok(value) = http::HeaderValue::from_bytes(value.as_encoded_bytes()) {
                trailing_metadata.insert(DETAILS, value);
            }
        }
        Self {
            code: status.code(),
            details: status.message().to_owned(),
            initial_metadata,
            trailing_metadata,
            response: None,
            is_cancelled: false,
        }
    }

    /// Returns the end of a call that this side has ended, for another reason than cancellation by the application.
    #[cold]
    pub(crate) fn local(code: Code, details: impl Into<String>) -> Self {
        Self { code, is_cancelled: false, ..Self::cancelled(details) }
    }

    #[cold]
    pub(crate) fn cancelled(details: impl Into<String>) -> Self {
        Self {
            code: Code::Cancelled,
            details: details.into(),
            initial_metadata: HeaderMap::new(),
            trailing_metadata: HeaderMap::new(),
            response: None,
            is_cancelled: true,
        }
    }

    /// Returns the end for Python.
    pub(crate) fn outcome(&self, py: Python<'_>) -> PyResult<Outcome> {
        let initial = metadata::to_python(py, &self.initial_metadata)?;
        let trailing = metadata::to_python(py, &self.trailing_metadata)?;
        Ok((code(py, self.code)?, self.details.clone(), initial, trailing))
    }

    /// Returns the response of a call with one, deserialized.
    pub(crate) fn response(&self, py: Python<'_>, deserializer: Option<&Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let bytes = PyBytes::new(py, self.response.as_deref().unwrap_or_default());
        match deserializer {
            Some(deserializer) => deserializer.call1(py, (bytes,)),
            None => Ok(bytes.into_any().unbind()),
        }
    }

    /// Returns the exception that awaiting the call raises: `AioRpcError` or `CancelledError`.
    #[cold]
    pub(crate) fn aio_error(&self, py: Python<'_>) -> PyErr {
        static ERROR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let created = ERROR
            .get_or_try_init(py, || {
                PyResult::Ok(py.import("thalweg.grpc.aio._errors")?.getattr("error_of")?.unbind())
            })
            .and_then(|error_of| {
                let initial = metadata::to_python(py, &self.initial_metadata)?;
                let trailing = metadata::to_python(py, &self.trailing_metadata)?;
                error_of
                    .call1(py, (self.is_cancelled, code(py, self.code)?, initial, trailing, &self.details))
            });
        match created {
            Ok(error) => PyErr::from_value(error.into_bound(py)),
            Err(error) => error,
        }
    }
}

/// Returns the member of `grpc.StatusCode`.
pub(crate) fn code(py: Python<'_>, code: Code) -> PyResult<Py<PyAny>> {
    static CODES: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
    let codes = CODES.get_or_try_init(py, || {
        let of_number = py.import("thalweg.grpc._status")?.getattr("CODES")?;
        of_number.try_iter()?.map(|code| code.map(Bound::unbind)).collect::<PyResult<Vec<_>>>()
    })?;
    Ok(codes[code as usize].clone_ref(py))
}

/// Returns the number of a member of `grpc.StatusCode`, or of an integer.
pub(crate) fn number(code: &Bound<'_, PyAny>) -> PyResult<i32> {
    if let Ok(number) = code.extract() {
        return Ok(number);
    }
    code.getattr(PyString::intern(code.py(), "value"))?.get_item(0)?.extract()
}
