//! Whether the libraries are built with the oldest versions of others that their manifests allow: what is stated there
//! is what is needed.

use std::fs;

use crate::failure::Result;
use crate::job::Job;
use crate::metadata::Metadata;
use crate::{files, workspace};

/// Builds what is published in a copy of the workspace, whose lock file has the oldest versions that we ask for, and
/// the newest that others ask for.
pub(super) fn check() -> Result<String> {
    let metadata = Metadata::load()?;
    let copy = workspace::target().join("oldest");
    files::remove(&copy.join("crates"))?;
    let tracked = Job::new("git").words("ls-files Cargo.toml crates examples xtask").quiet_text()?;
    for file in tracked.lines() {
        files::write(&copy.join(file), fs::read(workspace::root().join(file))?)?;
    }
    // Stable cargo takes an unstable option only with RUSTC_BOOTSTRAP.
    let resolve = Job::cargo("generate-lockfile --quiet -Zdirect-minimal-versions").directory(&copy);
    resolve.env("RUSTC_BOOTSTRAP", "1").minutes(5).run()?;
    let build = Job::cargo("check --locked --quiet --all-features").directory(&copy);
    let published = metadata.published();
    let build = published.fold(build, |build, package| build.arg("--package").arg(&package.name));
    build.env("CARGO_TARGET_DIR", copy.join("target")).builds(30).run()?;
    Ok("the oldest versions that our manifests allow are enough".to_owned())
}
