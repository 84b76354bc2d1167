//! CPUs and threads.

use std::env;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Args;
use thalweg_measure::cpus::CpuList;
use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;

/// CPUs, threads and polling of a command.
#[derive(Clone, Debug, Args)]
pub(crate) struct RuntimeArgs {
    /// Run only on these CPUs: 0 or 0-3,8
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<CpuList>,

    /// Number of worker threads
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Spin this long before sleeping [default: adaptive, up to 30us; 0s: off]
    ///
    /// Spinning lowers latency and uses more CPU.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) busy_poll: Option<Duration>,
}

impl RuntimeArgs {
    /// Pins this thread and its later children, and returns the number of worker threads. `default` gets the number of
    /// CPUs.
    pub(crate) fn threads(&self, default: impl FnOnce(usize) -> usize) -> Result<usize, Failure> {
        if let Some(cpus) = &self.cpus {
            pin(cpus)?;
        }
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Ok(self.threads.map_or_else(|| default(processors), NonZeroUsize::get))
    }
}

/// Pins this thread and its later children.
pub(crate) fn pin(cpus: &CpuList) -> Result<(), Failure> {
    cpus.pin_this_thread()
        .map_err(|error| Failure::bad_arguments(format!("failed to run on CPUs {cpus}: {error}")))
}

/// Returns the path of this program, to start it again.
pub(crate) fn program() -> Result<PathBuf, Failure> {
    env::current_exe().map_err(|error| Failure::failed(format!("failed to find this program: {error}")))
}

/// File descriptors that a runtime, its signal handlers and a connection need.
const DESCRIPTORS: usize = 8;

/// Starts a runtime with this number of threads.
pub(crate) fn runtime(threads: usize) -> Result<Runtime, Failure> {
    has_room(threads)?;
    let mut builder = match threads {
        // The waiting thread does the work, without hand-over between threads.
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("failed to start {threads} threads: {error}")))
}

pub(crate) fn thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Failure> {
    thread::Builder::new().spawn(work).map_err(|error| no_thread(&error))
}

/// Checks that descriptors and threads are available, because tokio panics without them.
fn has_room(threads: usize) -> Result<(), Failure> {
    let pairs = (0..DESCRIPTORS / 2).map(|_| UnixStream::pair()).collect::<io::Result<Vec<_>>>();
    pairs.map_err(|error| {
        Failure::failed(format!("failed to open sockets: {error}; allow more open files with `ulimit -n`"))
    })?;
    // Threads wait for the lock, so that all exist at the same time, as in the runtime.
    let together = Mutex::new(());
    thread::scope(|scope| {
        let guard = together.lock();
        let mut started =
            (0..threads).map(|_| thread::Builder::new().spawn_scoped(scope, || drop(together.lock())));
        let started = started.try_for_each(|thread| thread.map(drop));
        drop(guard);
        started.map_err(|error| no_thread(&error))
    })
}

fn no_thread(error: &io::Error) -> Failure {
    Failure::failed(format!("failed to start a thread: {error}"))
}
