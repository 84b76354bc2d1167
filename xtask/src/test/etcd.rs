//! An etcd of a step's own, and the protos of its services.

use std::path::PathBuf;

use crate::job::{Failure, Job, Log};
use crate::server::free_port;
use crate::{files, published, tools, workspace};

/// What serves at `port`, with empty data in a folder of this name.
pub(super) fn serve(port: &str, name: &str, log: &Log) -> Result<Job, Failure> {
    let data = workspace::output().join(name);
    files::remove(&data)?;
    let url = format!("http://127.0.0.1:{port}");
    let peers = format!("http://127.0.0.1:{}", free_port()?);
    Ok(Job::new(tools::etcd(log)?)
        .arg("--data-dir")
        .arg(&data)
        .words(&format!("--listen-client-urls {url} --advertise-client-urls {url}"))
        .words(&format!("--listen-peer-urls {peers} --initial-advertise-peer-urls {peers}"))
        .words(&format!("--initial-cluster default={peers}")))
}

/// The folder from which its files name each other. The client that the step `programs` drives has them with it.
pub(super) fn protos(log: &Log) -> Result<PathBuf, Failure> {
    let suite = workspace::suites().join("programs/tonic");
    Ok(published::source("etcd-client", &suite, log)?.join("proto"))
}
