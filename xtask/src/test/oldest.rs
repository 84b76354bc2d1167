//! The published crates build with the oldest dependency versions that their manifests allow.

use std::fs;

use crate::failure::Result;
use crate::job::Job;
use crate::metadata::Metadata;
use crate::{files, workspace};

/// Builds the published crates in a copy of the workspace. Its lock file has the oldest versions allowed for direct
/// dependencies and the newest for indirect ones.
pub(super) fn check() -> Result<String> {
    let metadata = Metadata::load()?;
    let copy = workspace::target().join("oldest");
    files::remove(&copy.join("crates"))?;
    let tracked = Job::new("git").words("ls-files Cargo.toml crates examples python xtask").quiet_text()?;
    for file in tracked.lines() {
        files::write(&copy.join(file), fs::read(workspace::root().join(file))?)?;
    }
    // Stable cargo accepts an unstable option only with RUSTC_BOOTSTRAP.
    let resolve = Job::cargo("generate-lockfile --quiet -Zdirect-minimal-versions").directory(&copy);
    resolve.env("RUSTC_BOOTSTRAP", "1").minutes(5).run()?;
    let build = Job::cargo("check --locked --quiet --all-features").directory(&copy);
    let published = metadata.published();
    let build = published.fold(build, |build, package| build.arg("--package").arg(&package.name));
    build.env("CARGO_TARGET_DIR", copy.join("target")).builds(30).run()?;
    Ok("the oldest versions that our manifests allow work".to_owned())
}
