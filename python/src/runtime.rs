//! The tokio runtime that runs the transport of all channels and servers of the process.
//!
//! Its threads never hold the GIL. A child process made by `fork` has none of them, so it gets a runtime of its own, and
//! what belongs to its parent's is left alone: dropping it could wait for threads that do not exist. The threads pause
//! while the process forks. Otherwise the child could get a lock that one of them holds, and would never release.

use std::cell::Cell;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::{PyResult, pyfunction};
use tokio::runtime::{Builder, Runtime};

/// Name of the environment variable with the number of threads.
const THREADS: &str = "THALWEG_PYTHON_THREADS";

static RUNTIME: AtomicPtr<Runtime> = AtomicPtr::new(ptr::null_mut());
/// Number of forks between the first process and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Forks in progress.
static FORKS: Mutex<Forks> = Mutex::new(Forks { count: 0, pause: None });

thread_local! {
    static IS_IO_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether the current thread is one of the runtime's.
#[inline]
pub(crate) fn is_io_thread() -> bool {
    IS_IO_THREAD.get()
}

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
        .on_thread_start(|| IS_IO_THREAD.set(true))
        .enable_all()
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start the I/O threads: {error}")))?;
    mark(&runtime)
        .map_err(|error| PyRuntimeError::new_err(format!("cannot set up the I/O threads: {error}")))?;
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

/// Time to wait for the I/O threads to pause. They run nothing that takes long.
const PAUSE_WAIT: Duration = Duration::from_secs(1);

/// Keeps I/O threads from running anything.
#[derive(Default)]
struct Pause {
    state: Mutex<PauseState>,
    changed: Condvar,
}

#[derive(Default)]
struct PauseState {
    paused: usize,
    is_over: bool,
}

impl Pause {
    fn lock(&self) -> MutexGuard<'_, PauseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks an I/O thread.
    fn hold(&self) {
        let mut state = self.lock();
        state.paused += 1;
        self.changed.notify_all();
        while !state.is_over {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until `threads` threads are blocked.
    fn wait(&self, threads: usize) {
        let is_running = |state: &mut PauseState| state.paused < threads;
        drop(self.changed.wait_timeout_while(self.lock(), PAUSE_WAIT, is_running));
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }
}

/// Forks of several threads, which may overlap. They share one pause, which ends with the last of them.
struct Forks {
    count: usize,
    /// `None` if there were no I/O threads.
    pause: Option<Arc<Pause>>,
}

fn forks() -> MutexGuard<'static, Forks> {
    FORKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pauses the I/O threads, unless another fork has. Called before `fork`. Returns the descriptor that [`mark`] has
/// registered, if there are any.
#[pyfunction]
pub(crate) fn before_fork() -> Option<RawFd> {
    let mut forks = forks();
    forks.count += 1;
    // SAFETY: a published runtime is never freed.
    let runtime = unsafe { RUNTIME.load(Ordering::Acquire).as_ref() }?;
    if forks.pause.is_none() {
        let pause = Arc::new(Pause::default());
        let threads = runtime.metrics().num_workers();
        for _ in 0..threads {
            let pause = Arc::clone(&pause);
            runtime.spawn(async move { pause.hold() });
        }
        pause.wait(threads);
        forks.pause = Some(pause);
    }
    drop(forks);
    marker().map(|marker| marker.socket.as_raw_fd())
}

/// Resumes the I/O threads, unless another thread forks. Called in the parent process after `fork`, even if it has
/// failed.
#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    let mut forks = forks();
    forks.count = forks.count.saturating_sub(1);
    if forks.count == 0
        && let Some(pause) = forks.pause.take()
    {
        pause.end();
    }
}

/// Leaves the runtime to the parent process. Called in a child process after `fork`.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    *forks() = Forks { count: 0, pause: None };
    *marker() = None;
    RUNTIME.store(ptr::null_mut(), Ordering::Release);
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// A socket, and its peer.
struct Marker {
    socket: tokio::net::UnixStream,
    _peer: UnixStream,
}

/// The socket that marks the selector of the runtime.
static MARKER: Mutex<Option<&'static Marker>> = Mutex::new(None);

/// Registers a socket that marks the runtime's selector, so that a child process finds it, and with it the sockets that
/// belong to its parent.
fn mark(runtime: &Runtime) -> std::io::Result<()> {
    let _entered = runtime.enter();
    let (socket, peer) = UnixStream::pair()?;
    socket.set_nonblocking(true)?;
    // Kept for good: a child process must not deregister it.
    let socket = tokio::net::UnixStream::from_std(socket)?;
    let marker = Box::leak(Box::new(Marker { socket, _peer: peer }));
    *self::marker() = Some(marker);
    Ok(())
}

fn marker() -> MutexGuard<'static, Option<&'static Marker>> {
    MARKER.lock().unwrap_or_else(PoisonError::into_inner)
}
