//! Dedicated threads of a server or channel, each with a single-threaded runtime: an executor per core.
//!
//! Tasks never move between these threads, and other threads' wake-ups do not interrupt them. Off by default:
//! everything then runs on the caller's runtime.

mod error;
mod pin;

pub use error::ExecutorError;
pub(crate) use pin::current_cpu;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{io, thread};

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

use error::THREADS_MAX;

/// Number and placement of the threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExecutorOptions {
    /// `None` for one thread per processor in `cpus`, and no threads if there are none.
    pub(crate) threads: Option<usize>,
    /// Processors that the threads are pinned to, round-robin. If empty, threads are not pinned.
    pub(crate) cpus: Vec<usize>,
}

/// Maximum wait for threads to end. A thread blocked by a handler ends later.
const END_WAIT_MAX: Duration = Duration::from_secs(2);

/// Running threads. Dropping it ends them, and drops the tasks on their runtimes.
#[derive(Debug)]
pub(crate) struct Executor {
    threads: Vec<Worker>,
    /// Start of the next search for a thread.
    next: AtomicUsize,
    /// The threads hold receivers. They end when the value becomes true or the sender is dropped.
    shutdown: watch::Sender<bool>,
    running: watch::Receiver<usize>,
}

#[derive(Debug)]
struct Worker {
    runtime: Handle,
    cpu: Option<usize>,
    load: Arc<AtomicUsize>,
}

/// A place on a thread for a long-lived task such as a connection.
#[derive(Debug)]
pub(crate) struct ThreadSlot {
    pub(crate) runtime: Handle,
    /// The processor that the thread is pinned to.
    pub(crate) cpu: Option<usize>,
    load: Arc<AtomicUsize>,
}

impl ExecutorOptions {
    /// Starts the threads, each named `name` and its index. Returns `None` if no threads are configured.
    pub(crate) fn start(&self, name: &'static str) -> Result<Option<Executor>, ExecutorError> {
        let count = match self.threads {
            None if self.cpus.is_empty() => return Ok(None),
            None => self.cpus.len(),
            Some(count) => count,
        };
        match count {
            0 => Err(ExecutorError::NoThreads),
            1..=THREADS_MAX => Executor::start(name, count, &self.cpus).map(Some),
            _ => Err(ExecutorError::TooManyThreads(count)),
        }
    }
}

impl Executor {
    fn start(name: &'static str, count: usize, cpus: &[usize]) -> Result<Self, ExecutorError> {
        let shutdown = watch::Sender::new(false);
        let (alive, running) = watch::channel(0);
        let alive = Arc::new(alive);
        let start = |index: usize| {
            let cpu = (!cpus.is_empty()).then(|| cpus[index % cpus.len()]);
            let (started, receiver) = mpsc::sync_channel(1);
            let (shutdown, alive) = (shutdown.subscribe(), RunningThread::new(&alive));
            thread::Builder::new()
                .name(format!("{name}-{index}"))
                .spawn(move || run(index, cpu, &started, shutdown, alive))
                .map_err(|source| ExecutorError::Start { index, source })?;
            let panicked = || ExecutorError::Start { index, source: io::Error::other("it panicked") };
            let runtime = receiver.recv().map_err(|_| panicked())??;
            Ok(Worker { runtime, cpu, load: Arc::default() })
        };
        let threads = (0..count).map(start).collect::<Result<_, _>>()?;
        Ok(Self { threads, next: AtomicUsize::new(0), shutdown, running })
    }

    /// Reserves a place on the least loaded thread, round-robin among equals.
    pub(crate) fn reserve_slot(&self) -> ThreadSlot {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.threads.len();
        let in_turn = (0..count).map(|step| &self.threads[first.wrapping_add(step) % count]);
        let worker = in_turn.min_by_key(|worker| worker.load.load(Ordering::Relaxed));
        let Worker { runtime, cpu, load } = worker.expect("at least one thread");
        load.fetch_add(1, Ordering::Relaxed);
        ThreadSlot { runtime: runtime.clone(), cpu: *cpu, load: Arc::clone(load) }
    }

    /// Ends the threads and waits for them, except blocked ones.
    pub(crate) async fn end(&self) {
        self.shutdown.send_replace(true);
        let mut running = self.running.clone();
        let ended = running.wait_for(|&count| count == 0);
        // On timeout a handler blocks its thread, which ends when the handler returns.
        let _ = tokio::time::timeout(END_WAIT_MAX, ended).await;
    }
}

impl Drop for ThreadSlot {
    fn drop(&mut self) {
        self.load.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Main function of a thread.
fn run(
    index: usize,
    cpu: Option<usize>,
    started: &mpsc::SyncSender<Result<Handle, ExecutorError>>,
    mut shutdown: watch::Receiver<bool>,
    alive: RunningThread,
) {
    let pinned = cpu.map_or(Ok(()), pin::pin_this_thread);
    let runtime = pinned.and_then(|()| {
        let built = Builder::new_current_thread().enable_all().build();
        built.map_err(|source| ExecutorError::Start { index, source })
    });
    // The starter waits for each thread, so the channel has a receiver.
    match runtime {
        Err(error) => drop(started.send(Err(error))),
        Ok(runtime) => {
            drop(started.send(Ok(runtime.handle().clone())));
            // An error means that the executor was dropped.
            let _ = runtime.block_on(shutdown.wait_for(|&is_shutting_down| is_shutting_down));
            // Dropping it instead would wait for blocking work of handlers.
            runtime.shutdown_background();
        }
    }
    drop(alive);
}

/// Counts a running thread, even if it panics.
struct RunningThread(Arc<watch::Sender<usize>>);

impl RunningThread {
    fn new(count: &Arc<watch::Sender<usize>>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(Arc::clone(count))
    }
}

impl Drop for RunningThread {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
