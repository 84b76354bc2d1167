//! One load by several machines, as `deploy` has it: the manifests for Kubernetes, and the driver for Ray.

mod kubernetes;
mod ray;

use crate::job::{Failure, Log};

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let kubernetes = kubernetes::check(log)?;
    let ray = ray::check(log)?;
    Ok(format!("{kubernetes}; {ray}"))
}
