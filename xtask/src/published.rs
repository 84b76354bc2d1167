//! Third-party crates built on tonic, with `thalweg-tonic` in its place: their sources from the registry, with only the
//! `tonic` entries of their manifests changed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::job::Job;
use crate::metadata::{Metadata, Package};
use crate::{files, workspace};

/// The folder where the suites' manifests expect them, whatever cargo's target folder is.
pub(crate) fn folder() -> PathBuf {
    workspace::root().join("target/programs")
}

/// The target folder shared by suites with tonic: crates that do not depend on it are built once.
pub(crate) fn build_folder() -> PathBuf {
    folder().join("build")
}

/// Copies the registry's sources of the crates `names`, in the versions locked by the package in `suite`, and changes
/// their manifests. Returns names and versions.
pub(crate) fn download(names: &[&str], suite: &Path) -> Result<Vec<String>> {
    let metadata = metadata(suite)?;
    names.iter().map(|name| take_source(metadata.package(name)?)).collect()
}

/// Cargo's folder with the sources of the crate `name`, in the version locked by the package in `suite`.
pub(crate) fn source(name: &str, suite: &Path) -> Result<PathBuf> {
    Ok(metadata(suite)?.package(name)?.folder().to_owned())
}

/// Metadata of the package in `suite`; cargo fetches missing packages.
fn metadata(suite: &Path) -> Result<Metadata> {
    let job = Job::cargo("metadata --locked --format-version 1").directory(suite);
    Metadata::of(&job).map_err(|failure| missing!("{failure}"))
}

fn take_source(package: &Package) -> Result<String> {
    let Package { name, version, manifest_path, .. } = package;
    let changed = changed(&fs::read_to_string(manifest_path)?, &workspace::root().join("crates/tonic"))
        .map_err(|why| failed!("{name} {version}: {why}"))?;
    let copy = folder().join(name);
    let manifest = copy.join("Cargo.toml");
    // Rewritten files would be compiled again.
    if !fs::read_to_string(&manifest).is_ok_and(|present| present == changed) {
        files::remove(&copy)?;
        fs::create_dir_all(folder())?;
        Job::new("cp").arg("--recursive").arg(package.folder()).arg(&copy).run()?;
        fs::write(&manifest, &changed)?;
    }
    // For the log only: diff exits with 1 if it finds differences.
    Job::new("diff").arg("--unified=0").arg(manifest_path).arg(&manifest).status()?;
    Ok(format!("{name} {version}"))
}

/// Returns the manifest with `tonic` replaced by the crate in the folder `tonic`. Published manifests have a section
/// for each dependency. So an author's single line `tonic = { package = …, path = … }` becomes two lines here.
fn changed(manifest: &str, tonic: &Path) -> Result<String, String> {
    const SECTION: &str = "dependencies.tonic]\n";
    let new = format!("{SECTION}package = \"thalweg-tonic\"\npath = \"{}\"\n", tonic.display());
    let mut pieces = manifest.split(SECTION);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    let mut entries = 0;
    for piece in pieces {
        let entry = piece.strip_prefix("version = ").and_then(|rest| rest.split_once('\n'));
        let (_, rest) = entry.ok_or("the entry of `tonic` has no version")?;
        text += &new;
        text += rest;
        entries += 1;
    }
    if entries == 0 { Err("missing entry of `tonic`".to_owned()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tonic_entry_is_changed() {
        let check = |manifest: &str, expected: Result<&str, &str>| {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(changed(manifest, Path::new("/t")), expected);
        };
        check(
            "[dependencies.prost]\nversion = \"0.14\"\n\n[dependencies.tonic]\nversion = \"0.14.1\"\noptional = true\n",
            Ok(
                "[dependencies.prost]\nversion = \"0.14\"\n\n[dependencies.tonic]\npackage = \"thalweg-tonic\"\n\
                path = \"/t\"\noptional = true\n",
            ),
        );
        check("[dependencies.prost]\n", Err("missing entry of `tonic`"));
        check("[dependencies.tonic]\npath = \"x\"\n", Err("the entry of `tonic` has no version"));
    }
}
