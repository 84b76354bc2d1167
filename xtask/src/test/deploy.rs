//! One load by several machines, as `deploy` has it: the manifests for Kubernetes, and the driver for Ray.

mod kubernetes;
mod ray;

use crate::failure::Result;

pub(super) fn check() -> Result<String> {
    let kubernetes = kubernetes::check()?;
    let ray = ray::check()?;
    Ok(format!("{kubernetes}; {ray}"))
}
