//! Crates of other people that stand on tonic, with `thalweg-tonic` in its place: their sources as the registry has
//! them, but for the entries of `tonic` in their manifests.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Result;
use crate::job::Job;
use crate::log;
use crate::workspace;

/// Where the manifests of suites look for them, wherever cargo builds.
pub(crate) fn folder() -> PathBuf {
    workspace::root().join("target/programs")
}

/// Copies what the registry has of the crates `names`, in the versions that the package in `suite` is built with, and
/// changes their manifests. Gives names and versions.
pub(crate) fn take(names: &[&str], suite: &Path) -> Result<Vec<String>> {
    let metadata = metadata(suite)?;
    names.iter().map(|name| take_source(name, &metadata)).collect()
}

/// Where cargo has what the registry has of the crate `name`, in the version that the package in `suite` is built with.
pub(crate) fn source(name: &str, suite: &Path) -> Result<PathBuf> {
    let metadata = metadata(suite)?;
    let manifest = Path::new(package(name, &metadata)?["manifest_path"].as_str().unwrap_or_default());
    Ok(manifest.parent().unwrap_or(manifest).to_owned())
}

/// What cargo knows of the package in `suite`; it fetches what is missing.
fn metadata(suite: &Path) -> Result<Value> {
    let job = Job::cargo("metadata --locked --format-version 1").directory(suite).builds(5);
    let text = job.quiet_text().map_err(|failure| missing!("{}", failure.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failed!("the output of `{job}` is not JSON: {error}"))
}

fn package<'m>(name: &str, metadata: &'m Value) -> Result<&'m Value> {
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == name);
    package.ok_or_else(|| failed!("the suite does not use {name}"))
}

fn take_source(name: &str, metadata: &Value) -> Result<String> {
    let package = package(name, metadata)?;
    let published = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let version = package["version"].as_str().unwrap_or_default();
    let tonic = workspace::root().join("crates/tonic");
    let changed =
        changed(&fs::read_to_string(published)?, &tonic).map_err(|why| failed!("{name} {version}: {why}"))?;
    for line in &changed.lines {
        log::line(format_args!("{name}: {line}"))?;
    }
    let copy = folder().join(name);
    let manifest = copy.join("Cargo.toml");
    // What is written anew is compiled anew.
    if !fs::read_to_string(&manifest).is_ok_and(|present| present == changed.manifest) {
        if copy.exists() {
            fs::remove_dir_all(&copy)?;
        }
        fs::create_dir_all(folder())?;
        let from = published.parent().unwrap_or(published);
        Job::new("cp").arg("--recursive").arg(from).arg(&copy).run()?;
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
