//! The tokio runtime that runs the transport of all channels and servers of the process.
//!
//! Its threads never hold the GIL. A child process made by `fork` has none of them, so it gets a runtime of its own, and
//! what belongs to its parent's is left alone: dropping it could wait for threads that do not exist.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::{PyResult, pyfunction};
use tokio::runtime::{Builder, Runtime};

/// Name of the environment variable with the number of threads.
const THREADS: &str = "THALWEG_PYTHON_THREADS";

static RUNTIME: AtomicPtr<Runtime> = AtomicPtr::new(ptr::null_mut());
/// Number of forks between the first process and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Returns the number of forks before this process. Objects of other generations belong to a parent process.
#[inline]
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Returns the runtime, which is started by the first call.
///
/// # Errors
/// Returns an error if `THALWEG_PYTHON_THREADS` is not a number of threads, or if no thread can be started.
#[inline]
pub(crate) fn runtime() -> PyResult<&'static Runtime> {
    let runtime = RUNTIME.load(Ordering::Acquire);
    // SAFETY: a published runtime is never freed.
    unsafe { runtime.as_ref() }.map_or_else(start, Ok)
}

#[cold]
fn start() -> PyResult<&'static Runtime> {
    let threads = threads()?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("thalweg-io")
        .enable_all()
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start the I/O threads: {error}")))?;
    let fresh = Box::into_raw(Box::new(runtime));
    match RUNTIME.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: it comes from `Box::into_raw` and is never freed.
        Ok(_) => Ok(unsafe { &*fresh }),
        Err(published) => {
            // SAFETY: `fresh` was not published, so this is the only reference.
            unsafe { Box::from_raw(fresh) }.shutdown_background();
            // SAFETY: a published runtime is never freed.
            Ok(unsafe { &*published })
        }
    }
}

fn threads() -> PyResult<usize> {
    let Ok(value) = std::env::var(THREADS) else { return Ok(1) };
    match value.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err(PyRuntimeError::new_err(format!(
            "{THREADS} is `{value}`; set it to a number of threads from 1 to 1024, or unset it"
        ))),
    }
}

/// Leaves the runtime to the parent process. Called in a child process after `fork`.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    RUNTIME.store(ptr::null_mut(), Ordering::Release);
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
