//! An etcd server, and the protos of its services.

use std::path::PathBuf;

use crate::failure::Result;
use crate::job::Job;
use crate::server::free_port;
use crate::{files, published, tools, workspace};

/// The job that serves at `port`, with an empty data folder of this name.
pub(crate) fn serve(port: &str, name: &str) -> Result<Job> {
    let data = workspace::output().join(name);
    files::remove(&data)?;
    let url = format!("http://127.0.0.1:{port}");
    let peers = format!("http://127.0.0.1:{}", free_port()?);
    Ok(Job::new(tools::etcd()?)
        .arg("--data-dir")
        .arg(&data)
        .words(&format!("--listen-client-urls {url} --advertise-client-urls {url}"))
        .words(&format!("--listen-peer-urls {peers} --initial-advertise-peer-urls {peers}"))
        .words(&format!("--initial-cluster default={peers}")))
}

/// The import root of etcd's protos, which the client used by the step `programs` includes.
pub(crate) fn protos() -> Result<PathBuf> {
    let suite = workspace::suites().join("programs/tonic");
    Ok(published::source("etcd-client", &suite)?.join("proto"))
}
