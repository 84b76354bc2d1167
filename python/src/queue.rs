//! Wakes an event loop or a thread once for many finished operations, and the I/O threads once for many started ones:
//! [`CompletionQueue`].

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::os::fd::{FromRawFd, RawFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::awaitable::Awaitable;
use crate::channel::InFlight;
use crate::exchange::Exchange;
use crate::loops;
use crate::runtime;
use crate::unary::UnaryCall;

/// Rounds of completions that a loop runs before it lets others have a turn.
const ROUNDS_MAX: usize = 4;

/// Details of a call whose event loop was closed.
const LOOP_CLOSED: &str = "the event loop of the call is closed";

/// A thing to do on the queue's thread.
pub(crate) enum Completion {
    /// Wakes the task that awaits an operation.
    Wake(Py<Awaitable>),
    /// Continues a unary call whose connection has news of it.
    Advance(Arc<UnaryCall>),
    /// Calls a function with one argument.
    Call(Py<PyAny>, Py<PyAny>),
    /// Calls a function with the number of a channel's connectivity state.
    StateChanged(Py<PyAny>, i32),
    /// Hands over a call that has arrived at a server.
    Arrived(Box<dyn Arrived>),
}

impl Completion {
    fn run(self, py: Python<'_>) -> PyResult<()> {
        match self {
            Self::Wake(awaitable) => awaitable.get().wake(py, &awaitable),
            Self::Advance(call) => call.advance(py),
            Self::Call(function, argument) => function.call1(py, (argument,)).map(drop),
            Self::StateChanged(function, state) => function.call1(py, (state,)).map(drop),
            Self::Arrived(call) => call.start(py),
        }
    }

    /// Drops a completion that will not run. Runs no Python code unless the current thread has the GIL.
    fn discard(self) {
        if let Self::Advance(call) = self {
            call.cancel(LOOP_CLOSED);
        }
    }
}

/// A call that has arrived at a server.
pub(crate) trait Arrived: Send {
    /// Starts the handler.
    fn start(self: Box<Self>, py: Python<'_>) -> PyResult<()>;
}

/// A thing to do on an I/O thread.
pub(crate) enum Submission {
    /// Starts a unary call.
    Unary(Arc<UnaryCall>),
    /// Starts a call with streams, whose I/O is a task.
    Stream(Arc<Exchange>, Pin<Box<dyn Future<Output = ()> + Send>>),
}

/// Finished operations of an event loop or a thread. I/O threads add to it without the GIL; the loop is woken by a file
/// descriptor when the queue was empty, and then takes all of them.
pub(crate) struct Queue {
    completions: Mutex<Completions>,
    bell: Arc<Bell>,
    generation: u64,
}

#[derive(Default)]
struct Completions {
    list: Vec<Completion>,
    /// The loop takes completions, and will find new ones without being woken.
    is_running: bool,
    /// Nobody takes completions any more. Calls in flight refer to the queue, and completions to calls: kept ones would
    /// never be freed.
    is_closed: bool,
}

/// Wakes the loop.
struct Bell {
    /// An eventfd, or the write end of a pipe.
    write_end: File,
    /// Wakes the task that rings on behalf of the I/O threads.
    by_io_thread: Notify,
    /// Tasks of the I/O thread that are ready may have further completions.
    is_early: AtomicBool,
    is_closed: AtomicBool,
}

impl Bell {
    fn new(write_end: File) -> Self {
        let (is_early, is_closed) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { write_end, by_io_thread: Notify::new(), is_early, is_closed }
    }

    fn ring(&self) {
        // A full pipe has already woken the loop; a closed one has no loop any more.
        let _ = (&self.write_end).write(&1_u64.to_ne_bytes());
    }

    /// Rings when the connection that had news has reported all of it. If these were tasks' completions, it rings after
    /// the other tasks that are ready on the I/O thread, so that the loop gets the completions of all of them.
    async fn ring_late(self: Arc<Self>) {
        loop {
            self.by_io_thread.notified().await;
            if self.is_closed.load(Ordering::Relaxed) {
                return;
            }
            if self.is_early.swap(false, Ordering::Relaxed) {
                yield_now().await;
            }
            self.ring();
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Completions> {
        self.completions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a completion and wakes the loop if the queue was empty. A closed queue discards it.
    pub(crate) fn push(&self, completion: Completion) {
        let is_of_task = !matches!(completion, Completion::Advance(_));
        let mut completions = self.lock();
        if completions.is_closed {
            drop(completions);
            return self.reject(completion);
        }
        completions.list.push(completion);
        let must_ring = completions.list.len() == 1 && !completions.is_running;
        drop(completions);
        if must_ring {
            if runtime::is_io_thread() {
                self.bell.is_early.store(is_of_task, Ordering::Relaxed);
                self.bell.by_io_thread.notify_one();
            } else {
                self.bell.ring();
            }
        }
    }
}

impl Queue {
    /// Returns whether the queue is of this process, and not of a parent.
    fn is_own(&self) -> bool {
        self.generation == runtime::generation()
    }

    /// Discards a completion on an I/O thread: the current one may hold locks of the call's connection.
    #[cold]
    fn reject(&self, completion: Completion) {
        if !self.is_own() {
            return mem::forget(completion);
        }
        match runtime::runtime() {
            Ok(runtime) => drop(runtime.spawn(async move { completion.discard() })),
            // The runtime exists: the queue has started it.
            Err(_) => completion.discard(),
        }
    }

    /// Discards all completions, and those to come.
    fn close(&self) {
        let mut completions = self.lock();
        completions.is_closed = true;
        let list = mem::take(&mut completions.list);
        drop(completions);
        if !self.is_own() {
            list.into_iter().for_each(mem::forget);
            return;
        }
        self.bell.is_closed.store(true, Ordering::Relaxed);
        self.bell.by_io_thread.notify_one();
        list.into_iter().for_each(Completion::discard);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.close();
    }
}

/// Started operations that the I/O threads do not know yet.
#[derive(Default)]
struct Submissions {
    list: Vec<Submission>,
    /// The loop will hand them over: at the end of `run`, or by a callback.
    is_scheduled: bool,
}

/// The queue of an asyncio event loop, or of a thread.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct CompletionQueue {
    queue: Arc<Queue>,
    submissions: Mutex<Submissions>,
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

    fn submissions(&self) -> MutexGuard<'_, Submissions> {
        self.submissions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands something to the I/O threads, at the end of the current round of callbacks of the loop, so that they are
    /// woken once for all calls started in it.
    pub(crate) fn submit(this: &Bound<'_, Self>, submission: Submission) -> PyResult<()> {
        let mut submissions = this.get().submissions();
        submissions.list.push(submission);
        if mem::replace(&mut submissions.is_scheduled, true) {
            return Ok(());
        }
        drop(submissions);
        let flush = this.getattr(pyo3::intern!(this.py(), "flush"))?;
        this.get()
            .event_loop
            .bind(this.py())
            .call_method1(pyo3::intern!(this.py(), "call_soon"), (flush,))?;
        Ok(())
    }
}

#[pymethods]
impl CompletionQueue {
    /// Creates the queue of `event_loop`; `None` for that of a thread, which calls `run_until_closed`. It owns both
    /// file descriptors: an eventfd and its duplicate, or a pipe. A loop's are non-blocking, a thread's blocking.
    #[new]
    fn new(event_loop: Bound<'_, PyAny>, read_end: RawFd, write_end: RawFd) -> PyResult<Self> {
        // SAFETY: the caller has created both for this queue and hands them over.
        let (read_end, write_end) = unsafe { (File::from_raw_fd(read_end), File::from_raw_fd(write_end)) };
        let bell = Arc::new(Bell::new(write_end));
        runtime::runtime()?.spawn(Arc::clone(&bell).ring_late());
        let queue = Queue { completions: Mutex::default(), bell, generation: runtime::generation() };
        Ok(Self {
            queue: Arc::new(queue),
            submissions: Mutex::default(),
            read_end,
            event_loop: event_loop.unbind(),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Runs all completions. The loop calls it when the descriptor is readable.
    ///
    /// # Errors
    /// Returns `SystemExit` and `KeyboardInterrupt` of a task or callback.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        let mut buffer = [0; 64];
        loop {
            match (&self.read_end).read(&mut buffer) {
                Ok(64) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => break,
            }
        }
        self.run_pending(py)
    }

    /// Runs completions on this thread until `close` is called. It waits for them without the GIL.
    ///
    /// # Errors
    /// Returns `OSError` if the descriptor cannot be read, or is non-blocking.
    fn run_until_closed(&self, py: Python<'_>) -> PyResult<()> {
        while !self.is_closed.load(Ordering::Acquire) {
            py.detach(|| self.wait())?;
            self.run_pending(py)?;
        }
        self.discard();
        Ok(())
    }

    /// Closes the queue. That of a thread ends `run_until_closed`, after the completions that are in the queue. Those
    /// of a loop, which must be closed, are discarded. Later ones do not run. Calls in flight are cancelled when the
    /// connection has news of them.
    fn close(&self, py: Python<'_>) {
        self.is_closed.store(true, Ordering::Release);
        if self.event_loop.is_none(py) {
            self.queue.bell.ring();
        } else {
            loops::forget(py, &self.event_loop);
            self.discard();
        }
    }

    /// Calls `callback` with `argument` on the queue's thread.
    fn push(&self, callback: Py<PyAny>, argument: Py<PyAny>) {
        self.queue.push(Completion::Call(callback, argument));
    }

    /// Hands the calls that were started outside of `run` to the I/O threads.
    fn flush(&self) {
        let mut submissions = self.submissions();
        submissions.is_scheduled = false;
        let list = mem::take(&mut submissions.list);
        drop(submissions);
        hand_over(list);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)
    }
}

impl CompletionQueue {
    /// Discards completions, and calls that have not started.
    fn discard(&self) {
        let submissions = mem::take(&mut self.submissions().list);
        self.queue.close();
        if !self.queue.is_own() {
            submissions.into_iter().for_each(mem::forget);
            return;
        }
        for submission in submissions {
            match submission {
                Submission::Unary(call) => call.cancel(LOOP_CLOSED),
                Submission::Stream(call, _) => call.cancel(LOOP_CLOSED),
            }
        }
    }

    fn wait(&self) -> io::Result<()> {
        let mut buffer = [0; 64];
        loop {
            match (&self.read_end).read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => return outcome.map(drop),
            }
        }
    }

    /// Runs the completions, and those that come meanwhile, and hands over the calls that they start.
    ///
    /// # Errors
    /// Returns `SystemExit` and `KeyboardInterrupt`, which end the event loop. The loop will be woken for the rest.
    fn run_pending(&self, py: Python<'_>) -> PyResult<()> {
        let runtime = runtime::runtime()?;
        // Calls that go on here may need its timers.
        let _entered = runtime.enter();
        let _turn =
            Turn { queue: self, was_scheduled: mem::replace(&mut self.submissions().is_scheduled, true) };
        let mut list = Vec::new();
        for round in 0.. {
            {
                let mut completions = self.queue.lock();
                // The list emptied in the last round keeps its memory.
                mem::swap(&mut list, &mut completions.list);
                completions.is_running = !list.is_empty() && round < ROUNDS_MAX;
            }
            let mut completions = list.drain(..);
            while let Some(completion) = completions.next() {
                let Err(error) = completion.run(py) else { continue };
                if !self.event_loop.is_none(py) && ends_loop(py, &error) {
                    let rest: Vec<_> = completions.collect();
                    let mut completions = self.queue.lock();
                    completions.list.splice(0..0, rest);
                    completions.is_running = true;
                    return Err(error);
                }
                self.report(py, &error);
            }
            drop(completions);
            hand_over(mem::take(&mut self.submissions().list));
            if !self.queue.lock().is_running {
                return Ok(());
            }
        }
        Ok(())
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

/// The time in which a loop or thread runs completions.
struct Turn<'a> {
    queue: &'a CompletionQueue,
    was_scheduled: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let CompletionQueue { queue, submissions, .. } = self.queue;
        let mut completions = queue.lock();
        let is_early_end = mem::take(&mut completions.is_running) && !completions.list.is_empty();
        drop(completions);
        let mut submissions = submissions.lock().unwrap_or_else(PoisonError::into_inner);
        submissions.is_scheduled = self.was_scheduled;
        let list = mem::take(&mut submissions.list);
        drop(submissions);
        hand_over(list);
        if is_early_end {
            queue.bell.ring();
        }
    }
}

/// Returns whether an exception ends the event loop, as it does in callbacks of asyncio.
#[cold]
fn ends_loop(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PySystemExit>(py) || error.is_instance_of::<PyKeyboardInterrupt>(py)
}

/// Runs submissions on an I/O thread.
fn hand_over(submissions: Vec<Submission>) {
    if submissions.is_empty() {
        return;
    }
    // The runtime exists: the queue has started it.
    let Ok(runtime) = runtime::runtime() else { return };
    runtime.spawn(async move {
        for submission in submissions {
            match submission {
                Submission::Unary(call) => call.start(),
                Submission::Stream(_, task) => drop(tokio::spawn(task)),
            }
        }
    });
}
