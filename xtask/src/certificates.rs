//! Certificates for steps and benchmarks that speak TLS.

use std::path::PathBuf;

use crate::job::{Failure, Job, Log};
use crate::workspace;

/// Has the command make an authority, and what it issued to a server at localhost, in the folder `name` of the output.
pub(crate) fn make(thalweg: Job, name: &str, log: &Log) -> Result<PathBuf, Failure> {
    let folder = workspace::output().join(name);
    thalweg.words("certs --force --out").arg(&folder).run(log)?;
    Ok(folder)
}
