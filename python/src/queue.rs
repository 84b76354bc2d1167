//! Wakes an event loop once for many finished operations: [`CompletionQueue`].

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::mem;
use std::os::fd::{FromRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::awaitable::Awaitable;
use crate::runtime;

/// A thing to do on the event loop's thread.
pub(crate) enum Completion {
    /// Wakes the task that awaits an operation.
    Wake(Py<Awaitable>),
    /// Calls a function with one argument.
    Call(Py<PyAny>, Py<PyAny>),
    /// Hands over a call that has arrived at a server.
    Arrived(Box<dyn Arrived>),
}

/// A call that has arrived at a server.
pub(crate) trait Arrived: Send {
    /// Starts the handler.
    fn start(self: Box<Self>, py: Python<'_>) -> PyResult<()>;
}

/// Finished operations of an event loop. I/O threads add to it without the GIL; the loop is woken by a file descriptor
/// when the queue was empty, and then takes all of them.
pub(crate) struct Queue {
    completions: Mutex<Vec<Completion>>,
    /// An eventfd, or the write end of a pipe.
    write_end: File,
    generation: u64,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Vec<Completion>> {
        self.completions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a completion and wakes the loop if the queue was empty.
    pub(crate) fn push(&self, completion: Completion) {
        let mut completions = self.lock();
        completions.push(completion);
        let was_empty = completions.len() == 1;
        drop(completions);
        if was_empty {
            // A full pipe has already woken the loop; a closed one has no loop any more.
            let _ = (&self.write_end).write(&1_u64.to_ne_bytes());
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.generation != runtime::generation() {
            mem::take(&mut *self.lock()).into_iter().for_each(mem::forget);
        }
    }
}

/// The queue of an asyncio event loop.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct CompletionQueue {
    queue: Arc<Queue>,
    read_end: File,
    /// The event loop.
    event_loop: Py<PyAny>,
    /// `loop.call_exception_handler`.
    report: Py<PyAny>,
}

impl CompletionQueue {
    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(crate) fn event_loop(&self) -> &Py<PyAny> {
        &self.event_loop
    }
}

#[pymethods]
impl CompletionQueue {
    /// Creates the queue of `event_loop`. It owns both file descriptors, which are non-blocking: an eventfd and its
    /// duplicate, or a pipe.
    #[new]
    fn new(event_loop: Bound<'_, PyAny>, read_end: RawFd, write_end: RawFd) -> PyResult<Self> {
        // SAFETY: the caller has created both for this queue and hands them over.
        let (read_end, write_end) = unsafe { (File::from_raw_fd(read_end), File::from_raw_fd(write_end)) };
        let queue = Queue { completions: Mutex::default(), write_end, generation: runtime::generation() };
        let report = event_loop.getattr("call_exception_handler")?.unbind();
        Ok(Self { queue: Arc::new(queue), read_end, event_loop: event_loop.unbind(), report })
    }

    /// Runs all completions. The loop calls it when the descriptor is readable.
    fn run(&self, py: Python<'_>) {
        let mut buffer = [0; 64];
        loop {
            match (&self.read_end).read(&mut buffer) {
                Ok(64) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => break,
            }
        }
        let completions = mem::take(&mut *self.queue.lock());
        for completion in completions {
            let done = match completion {
                Completion::Wake(awaitable) => awaitable.get().wake(py, &awaitable),
                Completion::Call(function, argument) => function.call1(py, (argument,)).map(drop),
                Completion::Arrived(call) => call.start(py),
            };
            if let Err(error) = done {
                self.report(py, &error);
            }
        }
    }
}

impl CompletionQueue {
    /// Passes an exception of a callback to the loop's exception handler.
    #[cold]
    fn report(&self, py: Python<'_>, error: &PyErr) {
        let context = pyo3::types::PyDict::new(py);
        let filled = context
            .set_item("message", "exception in a callback of a gRPC call")
            .and_then(|()| context.set_item("exception", error.value(py)));
        let reported = filled.and_then(|()| self.report.call1(py, (context,)).map(drop));
        if let Err(error) = reported {
            error.write_unraisable(py, None);
        }
    }
}
