//! Certificates for steps and benchmarks that speak TLS.

use std::path::PathBuf;

use crate::failure::Result;
use crate::job::Job;
use crate::workspace;

/// Has the command make an authority, and what it issued to a server at localhost, in the folder `name` of the output.
pub(crate) fn make(thalweg: Job, name: &str) -> Result<PathBuf> {
    let folder = workspace::output().join(name);
    thalweg.words("certs --force --out").arg(&folder).run()?;
    Ok(folder)
}
