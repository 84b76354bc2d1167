//! Wakes an event loop or a thread once for many finished operations: [`CompletionQueue`].

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::os::fd::{FromRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::awaitable::Awaitable;
use crate::runtime;

/// A thing to do on the queue's thread.
pub(crate) enum Completion {
    /// Wakes the task that awaits an operation.
    Wake(Py<Awaitable>),
    /// Calls a function with one argument.
    Call(Py<PyAny>, Py<PyAny>),
    /// Calls a function with the number of a channel's connectivity state.
    StateChanged(Py<PyAny>, i32),
    /// Hands over a call that has arrived at a server.
    Arrived(Box<dyn Arrived>),
}

/// A call that has arrived at a server.
pub(crate) trait Arrived: Send {
    /// Starts the handler.
    fn start(self: Box<Self>, py: Python<'_>) -> PyResult<()>;
}

/// Finished operations of an event loop or a thread. I/O threads add to it without the GIL; the loop is woken by a file
/// descriptor when the queue was empty, and then takes all of them.
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
            self.wake();
        }
    }

    fn wake(&self) {
        // A full pipe has already woken the loop; a closed one has no loop any more.
        let _ = (&self.write_end).write(&1_u64.to_ne_bytes());
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.generation != runtime::generation() {
            mem::take(&mut *self.lock()).into_iter().for_each(mem::forget);
        }
    }
}

/// The queue of an asyncio event loop, or of a thread.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct CompletionQueue {
    queue: Arc<Queue>,
    read_end: File,
    /// The event loop; `None` if a thread runs the completions.
    event_loop: Py<PyAny>,
    is_closed: AtomicBool,
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
    /// Creates the queue of `event_loop`; `None` for that of a thread, which calls `run_until_closed`. It owns both
    /// file descriptors: an eventfd and its duplicate, or a pipe. A loop's are non-blocking, a thread's blocking.
    #[new]
    fn new(event_loop: Bound<'_, PyAny>, read_end: RawFd, write_end: RawFd) -> Self {
        // SAFETY: the caller has created both for this queue and hands them over.
        let (read_end, write_end) = unsafe { (File::from_raw_fd(read_end), File::from_raw_fd(write_end)) };
        let queue = Queue { completions: Mutex::default(), write_end, generation: runtime::generation() };
        let is_closed = AtomicBool::new(false);
        Self { queue: Arc::new(queue), read_end, event_loop: event_loop.unbind(), is_closed }
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
        self.run_pending(py);
    }

    /// Runs completions on this thread until `close` is called. It waits for them without the GIL.
    ///
    /// # Errors
    /// Returns `OSError` if the descriptor cannot be read, or is non-blocking.
    fn run_until_closed(&self, py: Python<'_>) -> PyResult<()> {
        while !self.is_closed.load(Ordering::Acquire) {
            py.detach(|| self.wait())?;
            self.run_pending(py);
        }
        Ok(())
    }

    /// Ends `run_until_closed`, after the completions that are in the queue. Later ones do not run.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.queue.wake();
    }
}

impl CompletionQueue {
    fn wait(&self) -> io::Result<()> {
        let mut buffer = [0; 64];
        loop {
            match (&self.read_end).read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => return outcome.map(drop),
            }
        }
    }

    fn run_pending(&self, py: Python<'_>) {
        let completions = mem::take(&mut *self.queue.lock());
        for completion in completions {
            let done = match completion {
                Completion::Wake(awaitable) => awaitable.get().wake(py, &awaitable),
                Completion::Call(function, argument) => function.call1(py, (argument,)).map(drop),
                Completion::StateChanged(function, state) => function.call1(py, (state,)).map(drop),
                Completion::Arrived(call) => call.start(py),
            };
            if let Err(error) = done {
                self.report(py, &error);
            }
        }
    }

    /// Passes an exception of a callback to the loop's exception handler; logs it if there is no loop.
    #[cold]
    fn report(&self, py: Python<'_>, error: &PyErr) {
        let event_loop = self.event_loop.bind(py);
        let reported = if event_loop.is_none() {
            py.import("thalweg.grpc._threads")
                .and_then(|module| module.call_method1("log_callback_error", (error.value(py),)))
        } else {
            let context = pyo3::types::PyDict::new(py);
            context
                .set_item("message", "exception in a callback of a gRPC call")
                .and_then(|()| context.set_item("exception", error.value(py)))
                .and_then(|()| event_loop.call_method1("call_exception_handler", (context,)))
        };
        if let Err(error) = reported {
            error.write_unraisable(py, None);
        }
    }
}
