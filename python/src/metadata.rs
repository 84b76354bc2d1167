//! Conversion of metadata between Python's pairs and header fields.

use base64::Engine as _;
use http::HeaderMap;
use pyo3::create_exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString, PyTuple};
use thalweg_core::metadata::{
    AsciiMetadataKey, AsciiMetadataValue, BASE64, BinaryMetadataKey, BinaryMetadataValue, MetadataMap,
};

create_exception!(
    thalweg._native,
    InvalidMetadata,
    PyValueError,
    "Metadata that cannot be sent: its key is no lower-case header name, or its value no printable ASCII text."
);

/// Suffix of the keys of binary values.
const BINARY: &str = "-bin";

/// Metadata given by the application: any iterable of pairs, or `None`.
pub(crate) struct Given(pub(crate) HeaderMap);

impl<'py> FromPyObject<'_, 'py> for Given {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let mut metadata = MetadataMap::new();
        if !given.is_none() {
            for pair in given.try_iter()? {
                append(&mut metadata, &pair?)?;
            }
        }
        Ok(Self(metadata.into_headers()))
    }
}

fn append(metadata: &mut MetadataMap, pair: &Bound<'_, PyAny>) -> PyResult<()> {
    let shape = || PyTypeError::new_err("metadata must be pairs of a key and a value");
    if pair.len().map_err(|_| shape())? != 2 {
        return Err(shape());
    }
    let (key, value) = (pair.get_item(0)?, pair.get_item(1)?);
    let key = text(&key).ok_or_else(|| PyTypeError::new_err("keys of metadata must be str or bytes"))?;
    let value =
        text(&value).ok_or_else(|| PyTypeError::new_err("values of metadata must be str or bytes"))?;
    // HTTP/2 has no upper-case names; gRPC rejects them, too.
    let is_lower_case = !key.iter().any(u8::is_ascii_uppercase);
    let appended = is_lower_case && append_valid(metadata, &key, &value);
    if appended {
        return Ok(());
    }
    Err(InvalidMetadata::new_err(format!("metadata was invalid: {}", pair.repr()?)))
}

fn append_valid(metadata: &mut MetadataMap, key: &[u8], value: &[u8]) -> bool {
    if key.ends_with(BINARY.as_bytes()) {
        let Ok(key) = BinaryMetadataKey::from_bytes(key) else { return false };
        metadata.append_bin(key, BinaryMetadataValue::from_bytes(value));
        return true;
    }
    let (Ok(key), Ok(value)) = (AsciiMetadataKey::from_bytes(key), AsciiMetadataValue::try_from(value))
    else {
        return false;
    };
    metadata.append(key, value);
    true
}

/// Returns the bytes of a `str` or `bytes`.
fn text(value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    if let Ok(value) = value.cast::<PyString>() {
        return value.to_cow().ok().map(|text| text.as_bytes().to_vec());
    }
    value.cast::<PyBytes>().ok().map(|bytes| bytes.as_bytes().to_vec())
}

/// Returns metadata as a tuple of named pairs. Binary values are `bytes`, others `str`.
pub(crate) fn to_python(py: Python<'_>, metadata: &HeaderMap) -> PyResult<Py<PyTuple>> {
    static PAIR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if metadata.is_empty() {
        return Ok(PyTuple::empty(py).unbind());
    }
    let pair = PAIR.get_or_try_init(py, || {
        PyResult::Ok(py.import("thalweg.grpc._metadata")?.getattr("Metadatum")?.unbind())
    })?;
    let mut pairs = Vec::with_capacity(metadata.len());
    for (key, value) in metadata {
        let key = key.as_str();
        pairs.push(if key.ends_with(BINARY) {
            let value = BASE64.decode(value.as_bytes()).unwrap_or_default();
            pair.call1(py, (key, PyBytes::new(py, &value)))?
        } else {
            pair.call1(py, (key, String::from_utf8_lossy(value.as_bytes())))?
        });
    }
    Ok(PyTuple::new(py, pairs)?.unbind())
}
