//! Paths of the workspace.

use std::env;
use std::path::{Path, PathBuf};

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().expect("xtask is one folder below the root")
}

/// Cargo's target directory.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo's home, with its copies of registries.
pub(crate) fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

/// Programs for the suites, at pinned versions.
pub(crate) fn tools() -> PathBuf {
    target().join("tools")
}

/// Logs and results of this program.
pub(crate) fn output() -> PathBuf {
    target().join("xtask")
}

/// Our sources for the external suites.
pub(crate) fn suites() -> PathBuf {
    root().join("xtask/suites")
}
