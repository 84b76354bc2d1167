//! The Python package: its wheel, and installing it.

use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::job::Job;
use crate::{files, tools, workspace};

/// How a wheel is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// For this machine, with cargo's profile `dev`, whose dependencies other steps share.
    Debug,
    /// For this machine, optimised.
    Release,
    /// Optimised, for any Linux with glibc 2.17 or later. Zig links it.
    Manylinux,
}

/// Builds the wheel and returns its path.
pub(crate) fn wheel(build: Build) -> Result<PathBuf> {
    let python = tools::maturin()?;
    let folder = workspace::target().join("wheels").join(format!("{build:?}").to_lowercase());
    let folder = files::create_empty(folder)?;
    let job = Job::new(&python).words("-m maturin build --locked --manifest-path");
    let job = job.arg(package().join("Cargo.toml")).arg("--out").arg(&folder);
    let job = job.words(match build {
        Build::Debug => "--profile dev --compatibility linux",
        Build::Release => "--release --compatibility linux",
        Build::Manylinux => "--release --zig --compatibility manylinux2014",
    });
    job.builds(30).run()?;
    let wheels = files::below(&folder)?;
    let [wheel] = &wheels[..] else { bail!("maturin built {} wheels in {}", wheels.len(), folder.display()) };
    Ok(wheel.clone())
}

/// Installs the wheel in the environment of this Python, in place of one that was there.
pub(crate) fn install(python: &Path, wheel: &Path) -> Result<()> {
    let install =
        Job::new(python).words("-m pip install --quiet --no-input --no-index --no-deps --force-reinstall");
    install.arg(wheel).builds(5).run()
}

/// The folder of the package's sources.
pub(crate) fn package() -> PathBuf {
    workspace::root().join("python")
}
