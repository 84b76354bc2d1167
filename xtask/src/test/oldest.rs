//! Whether the libraries are built with the oldest versions of others that their manifests allow: what is stated there
//! is what is needed.

use std::fs;
use std::path::Path;

use crate::failure::Result;
use crate::job::Job;
use crate::metadata::Metadata;
use crate::{files, workspace};

/// Builds what is published in a copy of the workspace, whose manifest asks for the oldest versions and no others.
pub(super) fn check() -> Result<String> {
    let metadata = Metadata::load()?;
    let copy = workspace::target().join("oldest");
    files::remove(&copy.join("crates"))?;
    let tracked = Job::new("git").words("ls-files crates examples xtask").quiet_text()?;
    for file in tracked.lines() {
        files::write(&copy.join(file), fs::read(workspace::root().join(file))?)?;
    }
    let manifest = fs::read_to_string(workspace::root().join("Cargo.toml"))?;
    fs::write(copy.join("Cargo.toml"), with_oldest(&manifest))?;
    resolve(&copy)?;
    let build = Job::cargo("check --locked --quiet --all-features").directory(&copy);
    let published = metadata.published();
    let build = published.fold(build, |build, package| build.arg("--package").arg(&package.name));
    build.env("CARGO_TARGET_DIR", copy.join("target")).builds(30).run()?;
    Ok("the oldest versions that our manifests allow are enough".to_owned())
}

/// What others ask for is as new as ever: only what we ask for is old.
fn resolve(copy: &Path) -> Result<()> {
    let _ = fs::remove_file(copy.join("Cargo.lock"));
    Job::cargo("generate-lockfile --quiet").directory(copy).minutes(5).run()
}

/// `x = "1.2"` becomes `x = "=1.2.0"`, in the manifest's table of dependencies; our own packages stay.
fn with_oldest(manifest: &str) -> String {
    let mut is_table = false;
    let mut lines: Vec<String> = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_table = line == "[workspace.dependencies]";
        }
        lines.push(if is_table && !line.contains("path = ") { exact(line) } else { line.to_owned() });
    }
    lines.join("\n") + "\n"
}

fn exact(line: &str) -> String {
    let begin = if line.contains("version = \"") { "version = \"" } else { "= \"" };
    let Some((before, rest)) = line.split_once(begin) else { return line.to_owned() };
    let Some((version, after)) = rest.split_once('"') else { return line.to_owned() };
    if !version.starts_with(|first: char| first.is_ascii_digit()) {
        return line.to_owned();
    }
    let zeros = ".0".repeat(2_usize.saturating_sub(version.matches('.').count()));
    format!("{before}{begin}={version}{zeros}\"{after}")
}

#[cfg(test)]
mod tests {
    use super::with_oldest;

    #[test]
    fn what_we_ask_for_becomes_exact() {
        let manifest = "[workspace.package]\nversion = \"0.1.0\"\n\n[workspace.dependencies]\n\
                        ours = { path = \"crates/ours\", version = \"0.1.0\" }\nbytes = \"1.12\"\nslab = \"1\"\n\
                        prost = { version = \"0.14.2\", default-features = false }\n# A comment.\n\n[profile.dev]\n\
                        opt-level = 1\n";
        let expected = manifest
            .replace("\"1.12\"", "\"=1.12.0\"")
            .replace("slab = \"1\"", "slab = \"=1.0.0\"")
            .replace("\"0.14.2\"", "\"=0.14.2\"");
        assert_eq!(with_oldest(manifest), expected);
    }
}
