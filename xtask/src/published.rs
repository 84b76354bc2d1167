//! Crates of other people that stand on tonic, with `thalweg-tonic` in its place: their sources as the registry has
//! them, but for the entries of `tonic` in their manifests.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::job::Job;
use crate::metadata::{Metadata, Package};
use crate::{files, log, workspace};

/// Where the manifests of suites look for them, wherever cargo builds.
pub(crate) fn folder() -> PathBuf {
    workspace::root().join("target/programs")
}

/// Copies what the registry has of the crates `names`, in the versions that the package in `suite` is built with, and
/// changes their manifests. Gives names and versions.
pub(crate) fn take(names: &[&str], suite: &Path) -> Result<Vec<String>> {
    let metadata = metadata(suite)?;
    names.iter().map(|name| take_source(metadata.package(name)?)).collect()
}

/// Where cargo has what the registry has of the crate `name`, in the version that the package in `suite` is built with.
pub(crate) fn source(name: &str, suite: &Path) -> Result<PathBuf> {
    Ok(metadata(suite)?.package(name)?.folder().to_owned())
}

/// What cargo knows of the package in `suite`; it fetches what is missing.
fn metadata(suite: &Path) -> Result<Metadata> {
    let job = Job::cargo("metadata --locked --format-version 1").directory(suite);
    Metadata::of(&job).map_err(|failure| missing!("{failure}"))
}

fn take_source(package: &Package) -> Result<String> {
    let Package { name, version, manifest_path, .. } = package;
    let tonic = workspace::root().join("crates/tonic");
    let changed = changed(&fs::read_to_string(manifest_path)?, &tonic)
        .map_err(|why| failed!("{name} {version}: {why}"))?;
    for line in &changed.lines {
        log::line(format_args!("{name}: {line}"))?;
    }
    let copy = folder().join(name);
    let manifest = copy.join("Cargo.toml");
    // What is written anew is compiled anew.
    if !fs::read_to_string(&manifest).is_ok_and(|present| present == changed.manifest) {
        files::remove(&copy)?;
        fs::create_dir_all(folder())?;
        Job::new("cp").arg("--recursive").arg(package.folder()).arg(&copy).run()?;
        fs::write(&manifest, &changed.manifest)?;
    }
    Ok(format!("{name} {version}"))
}

/// A manifest with another crate under the name `tonic`.
#[derive(Debug, PartialEq, Eq)]
struct Changed {
    manifest: String,
    /// What differs, as `diff` has it.
    lines: Vec<String>,
}

/// `manifest` with the crate in the folder `tonic` under that name. cargo publishes manifests with a section for each
/// dependency, so what an author writes in one line, `tonic = { package = …, path = … }`, takes the place of one line
/// and makes two.
fn changed(manifest: &str, tonic: &Path) -> Result<Changed, String> {
    let mut lines = Vec::new();
    let mut entries = 0;
    let mut is_entry = false;
    let mut text = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_entry = matches!(line, "[dependencies.tonic]" | "[dev-dependencies.tonic]");
        }
        if is_entry && line.starts_with("version = ") {
            entries += 1;
            let new = ["package = \"thalweg-tonic\"".to_owned(), format!("path = \"{}\"", tonic.display())];

            lines.push(format!("-{line}"));
            lines.extend(new.iter().map(|line| format!("+{line}")));
            text += &new.join("\n");
        } else {
            text += line;
        }
        text.push('\n');
    }
    let sections = manifest.matches("dependencies.tonic]").count();
    if entries == 0 || entries != sections {
        return Err(format!("of {sections} entries of `tonic`, {entries} have a version"));
    }
    Ok(Changed { manifest: text, lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(manifest: &str, expected: Result<(&str, &[&str]), &str>) {
        let expected = expected.map(|(manifest, lines)| Changed {
            manifest: manifest.to_owned(),
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        });
        assert_eq!(changed(manifest, Path::new("/t")), expected.map_err(str::to_owned));
    }

    #[test]
    fn the_entry_of_tonic_is_changed_and_nothing_else() {
        check(
            "[dependencies.prost]\nversion = \"0.14\"\n\n[dependencies.tonic]\nversion = \"0.14.1\"\noptional = true\n",
            Ok((
                "[dependencies.prost]\nversion = \"0.14\"\n\n[dependencies.tonic]\npackage = \"thalweg-tonic\"\n\
                 path = \"/t\"\noptional = true\n",
                &["-version = \"0.14.1\"", "+package = \"thalweg-tonic\"", "+path = \"/t\""],
            )),
        );
        check("[dependencies.prost]\n", Err("of 0 entries of `tonic`, 0 have a version"));
        check(
            "[dependencies.tonic]\nversion = \"0.14\"\n[target.'cfg(unix)'.dependencies.tonic]\nversion = \"0.14\"\n",
            Err("of 2 entries of `tonic`, 1 have a version"),
        );
    }
}
