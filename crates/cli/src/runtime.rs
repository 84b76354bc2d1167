//! Processors and threads for the commands that do network work.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;
use thalweg_lab::cpus::CpuList;
use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;

/// Where a command's threads run.
#[derive(Clone, Debug, Args)]
pub(crate) struct RuntimeArgs {
    /// Run only on these processors, such as 0 or 0-3,8
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<CpuList>,

    /// How many threads do the work
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Before a connection on which nothing moves sleeps, go on looking for so long: takes a processor, saves a
    /// wake-up; 0s: not at all [default: up to 30us, where that pays]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) busy_poll: Option<Duration>,
}

impl RuntimeArgs {
    /// Pins this thread and all that come after it, and says how many threads are to do the work: `default` gets the
    /// number of processors there are.
    pub(crate) fn threads(&self, default: impl FnOnce(usize) -> usize) -> Result<usize, Failure> {
        if let Some(cpus) = &self.cpus {
            cpus.pin_this_thread().map_err(|error| {
                Failure::bad_arguments(format!("cannot run on the processors {cpus}: {error}"))
            })?;
        }
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Ok(self.threads.map_or_else(|| default(processors), NonZeroUsize::get))
    }
}

/// A runtime of that many threads.
pub(crate) fn runtime(threads: usize) -> Result<Runtime, Failure> {
    let mut builder = match threads {
        // The thread that waits does the work, too: no hand-over between threads.
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start {threads} threads: {error}")))
}
