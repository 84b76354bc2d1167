//! The completion queue of the running event loop.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::queue::CompletionQueue;

/// The loop that asked last, and its queue.
static LAST: Mutex<Option<(Py<PyAny>, Py<CompletionQueue>)>> = Mutex::new(None);

/// Returns the queue of the running event loop.
///
/// # Errors
/// Returns `RuntimeError` outside of a coroutine or callback.
pub(crate) fn current(py: Python<'_>) -> PyResult<Py<CompletionQueue>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let running = RUNNING
        .get_or_try_init(py, || PyResult::Ok(py.import("asyncio")?.getattr("get_running_loop")?.unbind()))?;
    let event_loop = running.call0(py)?;
    {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, queue)) = &*last
            && known.is(&event_loop)
        {
            return Ok(queue.clone_ref(py));
        }
    }
    find(py, event_loop)
}

#[cold]
fn find(py: Python<'_>, event_loop: Py<PyAny>) -> PyResult<Py<CompletionQueue>> {
    let of_loop = py.import("thalweg.grpc.aio._loops")?.getattr("completions_of")?;
    let queue: Py<CompletionQueue> = of_loop.call1((&event_loop,))?.extract()?;
    let last = (event_loop, queue.clone_ref(py));
    let old = LAST.lock().unwrap_or_else(PoisonError::into_inner).replace(last);
    drop(old);
    Ok(queue)
}

/// Forgets a closed loop.
pub(crate) fn forget(py: Python<'_>, event_loop: &Py<PyAny>) {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let is_last = last.as_ref().is_some_and(|(known, _)| known.bind(py).is(event_loop));
    let old = if is_last { last.take() } else { None };
    drop(last);
    drop(old);
}
