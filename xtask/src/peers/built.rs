//! Running a built peer, and reading the result of its load generator.

use std::path::PathBuf;

use crate::failure::Result;
use crate::job::Job;

/// Name of this workspace among the stacks.
pub(super) const OURS: &str = "thalweg";

#[derive(Clone, Debug)]
pub(crate) struct BuiltPeer {
    pub(crate) name: &'static str,
    /// Name and version reported by the program: `gRPC C++ 1.51.1`.
    pub(crate) version: String,
    pub(crate) program: PathBuf,
}

impl BuiltPeer {
    /// The program, ready for a command of the contract.
    pub(crate) fn command(&self) -> Job {
        let program = Job::new(&self.program);
        if self.name == OURS { program.words("peer") } else { program }
    }

    /// The server on a loopback port.
    pub(crate) fn serve(&self, port: u16) -> Job {
        self.command().words(&format!("serve --listen 127.0.0.1:{port}"))
    }

    /// The load generator against that port; `words` are its flags.
    pub(crate) fn load(&self, port: u16, words: &str) -> Job {
        self.command().words(&format!("load 127.0.0.1:{port} {words}"))
    }
}

/// Result of one run of a load generator.
pub(crate) struct LoadResult {
    pub(crate) rate_per_s: f64,
    /// Median latency; `None` for methods without latency.
    pub(crate) p50_ns: Option<f64>,
    /// Successful operations: calls, or messages of streams.
    pub(crate) messages: u64,
}

/// Runs `job`, a load generator, and reads its JSON. Any failed call is an error.
pub(crate) fn measure(job: Job) -> Result<LoadResult> {
    let job = job.words("-O json");
    let value = job.json()?;
    let errors = value["errors"].as_object().is_none_or(|errors| !errors.is_empty());
    ensure!(!errors, "`{job}`: errors {}", value["errors"]);
    let (rate, p50_ns) = (value["rate_per_s"].as_f64(), value["latency_ns"]["p50"].as_f64());
    match (rate, value["messages"].as_u64()) {
        (Some(rate_per_s), Some(messages)) => Ok(LoadResult { rate_per_s, p50_ns, messages }),
        _ => Err(failed!("`{job}` lacks keys of thalweg.load/3")),
    }
}
