//! Messages between Python's `bytes` and the engine.

use bytes::Bytes;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use thalweg_engine::{Chain, Encode, Payload};

/// From this length on, in bytes, a message is sent from Python's memory. A copy of a smaller one costs less than
/// giving it back.
const BORROWED_LEN_MIN: usize = 16 * 1024;

/// A serialized message.
#[derive(Clone, Debug)]
pub(crate) struct Message(pub(crate) Bytes);

/// A `bytes` object that lends its memory. It is immutable and does not move.
struct Lender {
    start: *const u8,
    len: usize,
    /// Keeps the memory. Dropped without the GIL, it is released the next time that a thread takes the GIL.
    _object: Py<PyBytes>,
}

// SAFETY: the memory is immutable and lives as long as the object.
unsafe impl Send for Lender {}
// SAFETY: same.
unsafe impl Sync for Lender {}

impl AsRef<[u8]> for Lender {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the object keeps the memory, which is immutable.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl Message {
    /// Takes the result of a serializer: `bytes`, or another object with a buffer, which is copied.
    pub(crate) fn from_python(object: Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes = match object.cast_into::<PyBytes>() {
            Ok(bytes) => bytes,
            Err(error) => Self::copy_of(error.into_inner())?,
        };
        let slice = bytes.as_bytes();
        if slice.len() < BORROWED_LEN_MIN {
            return Ok(Self(Bytes::copy_from_slice(slice)));
        }
        let (start, len) = (slice.as_ptr(), slice.len());
        Ok(Self(Bytes::from_owner(Lender { start, len, _object: bytes.unbind() })))
    }

    #[cold]
    fn copy_of(object: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyBytes>> {
        let py = object.py();
        let is_buffer = py.get_type::<pyo3::types::PyMemoryView>().call1((&object,)).is_ok();
        if !is_buffer {
            let name = object.get_type().qualname()?;
            return Err(PyTypeError::new_err(format!("a message must be bytes, not {name}")));
        }
        Ok(py.get_type::<PyBytes>().call1((object,))?.cast_into()?)
    }
}

impl Encode for Message {
    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn encode_chained(&self, out: &mut Chain) {
        out.push(self.0.clone());
    }
}

/// Returns a received message in memory of its own.
pub(crate) fn into_bytes(payload: Payload<'_>) -> Bytes {
    match payload {
        Payload::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
        Payload::Owned(bytes) => bytes,
    }
}
