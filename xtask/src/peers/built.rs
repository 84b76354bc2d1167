//! Running a peer that is built, and reading what its load generator found.

use std::path::PathBuf;

use crate::failure::Result;
use crate::job::Job;

/// The name of this workspace among the stacks.
pub(super) const OURS: &str = "thalweg";

/// A stack whose program is built.
#[derive(Clone, Debug)]
pub(crate) struct BuiltPeer {
    pub(crate) name: &'static str,
    /// What the program says it is: `gRPC C++ 1.51.1`.
    pub(crate) version: String,
    pub(crate) program: PathBuf,
}

impl BuiltPeer {
    /// The program, ready for a command of the contract.
    pub(crate) fn command(&self) -> Job {
        let program = Job::new(&self.program);
        if self.name == OURS { program.words("peer") } else { program }
    }

    /// The server on a port of the loopback address.
    pub(crate) fn serve(&self, port: u16) -> Job {
        self.command().words(&format!("serve --listen 127.0.0.1:{port}"))
    }

    /// The load generator against that port; `words` are its flags.
    pub(crate) fn load(&self, port: u16, words: &str) -> Job {
        self.command().words(&format!("load 127.0.0.1:{port} {words}"))
    }
}

/// What one run of a load generator found.
pub(crate) struct LoadResult {
    pub(crate) rate_per_s: f64,
    /// Of calls that have a latency.
    pub(crate) p50_ns: Option<f64>,
    /// Operations that succeeded: calls, or messages of streams.
    pub(crate) messages: u64,
}

/// Runs `job`, a load generator, and reads its JSON. A call that failed spoils the run.
pub(crate) fn measure(job: Job) -> Result<LoadResult> {
    let job = job.words("-O json");
    let value = job.json()?;
    let errors = value["errors"].as_object().is_none_or(|errors| !errors.is_empty());
    ensure!(!errors, "`{job}`: errors {}", value["errors"]);
    let (rate, p50_ns) = (value["rate_per_s"].as_f64(), value["latency_ns"]["p50"].as_f64());
    match (rate, value["messages"].as_u64()) {
        (Some(rate_per_s), Some(messages)) => Ok(LoadResult { rate_per_s, p50_ns, messages }),
        _ => Err(failed!("`{job}` left keys of thalweg.load/3 out")),
    }
}
