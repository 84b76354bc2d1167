//! Certificates for steps and benchmarks that speak TLS.

use std::path::PathBuf;

use crate::failure::Result;
use crate::job::Job;
use crate::workspace;

/// Creates a CA and a server certificate for localhost in the folder `name` of the output.
pub(crate) fn make(thalweg: Job, name: &str) -> Result<PathBuf> {
    let folder = workspace::output().join(name);
    thalweg.words("certs --force --out").arg(&folder).run()?;
    Ok(folder)
}
