//! Why threads can't run: [`ExecutorError`].

use std::io;

/// The most threads that a server or a channel can be given.
pub(super) const THREADS_MAX: usize = 1024;

/// Why an executor's threads can't run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutorError {
    /// `threads(0)`.
    #[error("0 threads are not allowed; use 1 or more, or `None` for the caller's runtime")]
    NoThreads,
    /// More than any machine has use for.
    #[error("{0} threads exceed the maximum of {THREADS_MAX}")]
    TooManyThreads(usize),
    /// A thread can't be kept on its processor.
    #[error("failed to pin a thread to CPU {cpu}: {source} (CPUs of this process: {allowed})")]
    Pin {
        /// The requested processor.
        cpu: usize,
        /// The system's error.
        source: io::Error,
        /// Processors on which the process may run, such as `0-3,8`.
        allowed: String,
    },
    /// The system refused a thread, or an epoll instance for its runtime.
    #[error("failed to start thread {index}: {source}")]
    Start {
        /// Index of the thread, from 0.
        index: usize,
        /// The system's error.
        source: io::Error,
    },
}
