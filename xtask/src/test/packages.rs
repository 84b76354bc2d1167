//! The packages as published in Cargo's registry: each builds from its own contents alone, and so do programs outside
//! the workspace that depend on them.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::job::Job;
use crate::metadata::{Metadata, Package};
use crate::{files, tools, workspace};

/// Programs in `xtask/suites/packages`, and their output.
const PROGRAMS: &[(&str, &str)] = &[("hello", "Hello packages!\n"), ("hello-tonic", "Hello tonic!\n")];
/// The proto file for their folder `proto`, relative to `xtask/suites`.
const PROTO: &str = "tonic/proto/helloworld.proto";
/// An example that is built but not run; another step runs its README.
const EXAMPLE: &str = "bookstore";

pub(super) fn check() -> Result<String> {
    tools::protoc()?;
    let published = published()?;
    let target = workspace::target().join("packages");
    let sources = package(&published, &target)?;
    let outside = target.join("outside");
    write_sources(&outside, &sources, &published)?;
    let cargo = |words: &str| building(words, &target).directory(&outside);
    cargo("build --workspace --all-targets --quiet").run()?;
    only_packages(&Metadata::of(&cargo("metadata --format-version 1"))?, &sources)?;
    for (name, expected) in PROGRAMS {
        let captured = Job::new(target.join("debug").join(name)).text()?;
        ensure!(captured == *expected, "{name} printed {captured:?}, expected {expected:?}");
    }
    Ok(format!(
        "{} packages build on their own; hello world, its tonic version and the {EXAMPLE} build on them",
        published.len()
    ))
}

/// A build of packages. It uses Cargo's own profile, without debug info, which would take several gigabytes.
fn building(words: &str, target: &Path) -> Job {
    Job::cargo(words).env("CARGO_TARGET_DIR", target).env("CARGO_PROFILE_DEV_DEBUG", "false").builds(40)
}

/// Names and versions of the published packages.
fn published() -> Result<Vec<(String, String)>> {
    let metadata = Metadata::load()?;
    let mut all: Vec<_> =
        metadata.published().map(|package| (package.name.clone(), package.version.clone())).collect();
    all.sort();
    Ok(all)
}

/// Packages all, builds each from its package, and unpacks them. Returns the folder, which has one folder per package.
fn package(published: &[(String, String)], target: &Path) -> Result<PathBuf> {
    // Leftovers would only confuse the reader of a failure.
    let sources = files::create_empty(target.join("sources"))?;
    files::remove(&target.join("package"))?;
    remove_from_cache(published, target)?;
    let package = building("package --locked --allow-dirty --quiet", target);
    let package = published.iter().fold(package, |package, (name, _)| package.arg("--package").arg(name));
    package.run()?;
    for (name, version) in published {
        let file = target.join("package").join(format!("{name}-{version}.crate"));
        Job::new("tar").words("--extract --gzip --file").arg(file).arg("--directory").arg(&sources).run()?;
        complete(&sources.join(format!("{name}-{version}")))?;
    }
    Ok(sources)
}

/// Removes files unpacked and built by an earlier run: cargo considers packages of the same version identical.
fn remove_from_cache(published: &[(String, String)], target: &Path) -> Result<()> {
    // The name of a registry in a local folder begins with `-`: it has no host.
    const SCRIPT: &str = r#"rm -rf "$0"/registry/src/-*/"$2-$3" "$1"/debug/.fingerprint/"$2"-*"#;
    for (name, version) in published {
        let job = Job::new("sh").words("-c").arg(SCRIPT).arg(workspace::cargo_home()).arg(target);
        job.arg(name).arg(version).run()?;
    }
    Ok(())
}

/// Checks that a package has the files its readers expect, and the fields shown by the registry and docs.rs.
fn complete(folder: &Path) -> Result<()> {
    let incomplete = |what: &str| Err(failed!("the package has no {what}: {}", folder.display()));
    for file in ["Cargo.toml", "README.md", "LICENSE-APACHE", "LICENSE-MIT", "src"] {
        if !folder.join(file).exists() {
            return incomplete(file);
        }
    }
    if let Some(missing) = missing_of_manifest(&fs::read_to_string(folder.join("Cargo.toml"))?) {
        return incomplete(missing);
    }
    let library = folder.join("src/lib.rs");
    if library.exists() && !fs::read_to_string(library)?.lines().any(|line| line.starts_with("//! ```")) {
        return incomplete("example on its front page");
    }
    Ok(())
}

/// The first required key missing in a manifest, as cargo writes it into a package.
fn missing_of_manifest(text: &str) -> Option<&'static str> {
    const KEYS: &[&str] = &[
        "categories",
        "description",
        "include",
        "keywords",
        "license",
        "readme",
        "repository",
        "rust-version",
    ];
    let has = |key: &str| text.lines().any(|line| line.split(" = ").next() == Some(key));
    let missing = KEYS.iter().find(|key| !has(key)).copied();
    let needs_docs = text.contains("\n[features]\n") && !text.contains("\n[package.metadata.docs.rs]\n");
    missing.or(needs_docs.then_some("[package.metadata.docs.rs] for its features"))
}

/// Creates a separate workspace with the programs; our packages come from `sources`.
fn write_sources(outside: &Path, sources: &Path, published: &[(String, String)]) -> Result<()> {
    files::remove(outside)?;
    let names: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).chain([EXAMPLE]).collect();
    for name in &names {
        let from = if *name == EXAMPLE { "examples" } else { "xtask/suites/packages" };
        files::copy(&workspace::root().join(from).join(name), &outside.join(name))?;
    }
    let proto = fs::read(workspace::suites().join(PROTO))?;
    for (name, _) in PROGRAMS {
        files::write(&outside.join(name).join("proto/helloworld.proto"), &proto)?;
    }
    let root = fs::read_to_string(workspace::root().join("Cargo.toml"))?;
    fs::write(outside.join("Cargo.toml"), manifest(&root, &names, sources, published)?)?;
    // Use the same versions of third-party crates as all other tests.
    fs::copy(workspace::root().join("Cargo.lock"), outside.join("Cargo.lock"))?;
    Ok(())
}

/// The workspace's manifest, without its packages and their paths.
fn manifest(root: &str, members: &[&str], sources: &Path, published: &[(String, String)]) -> Result<String> {
    let dependencies = root
        .split_once("[workspace.package]")
        .and_then(|(_, rest)| rest.split_once("\n[profile"))
        .map(|(kept, _)| kept)
        .ok_or_else(|| failed!("Cargo.toml has no `[workspace.package]` before its profiles"))?;
    let mut text = format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n\n[workspace.package]");
    for line in dependencies.lines() {
        let _ = writeln!(text, "{}", without_path(line));
    }
    text.push_str("\n[patch.crates-io]\n");
    for (name, version) in published {
        let source = sources.join(format!("{name}-{version}"));
        let _ = writeln!(text, "{name} = {{ path = \"{}\" }}", source.display());
    }
    Ok(text)
}

/// `x = { path = "crates/x", version = "1" }` without its path.
fn without_path(line: &str) -> String {
    let Some((before, rest)) = line.split_once("path = \"crates/") else { return line.to_owned() };
    let after = rest.split_once("\", ").map_or("", |(_, after)| after);
    format!("{before}{after}")
}

/// Checks that all our crates came from packages.
fn only_packages(metadata: &Metadata, sources: &Path) -> Result<()> {
    let mut found = BTreeSet::new();
    for Package { name, manifest_path, .. } in &metadata.packages {
        if name.starts_with("thalweg") && !name.ends_with(EXAMPLE) {
            let from = manifest_path.display();
            ensure!(manifest_path.starts_with(sources), "{name} came from {from}, not from its package");
            found.insert(name.as_str());
        }
    }
    let are_used = found.contains("thalweg") && found.contains("thalweg-tonic");
    ensure!(are_used, "the programs are not built on our packages, but on {found:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_manifest_keys_are_reported() {
        let keys = "categories description include keywords license readme repository rust-version";
        let lines: Vec<String> = keys.split(' ').map(|key| format!("{key} = \"x\"")).collect();
        let text = format!("[package]\n{}\n", lines.join("\n"));
        assert_eq!(missing_of_manifest(&text), None);
        assert_eq!(missing_of_manifest(&text.replace("readme", "readmes")), Some("readme"));
        let with_features = format!("{text}\n[features]\na = []\n");
        assert!(missing_of_manifest(&with_features).is_some_and(|what| what.contains("docs.rs")));
        assert_eq!(missing_of_manifest(&format!("{with_features}\n[package.metadata.docs.rs]\n")), None);
    }

    #[test]
    fn manifest_has_no_paths() {
        let root = "[workspace]\nmembers = [\"crates/*\"]\n\n[workspace.package]\nversion = \"0.1.0\"\n\n\
                    [workspace.dependencies]\nthalweg = { path = \"crates/thalweg\", version = \"0.1.0\" }\n\
                    bytes = \"1.12\"\n\n[profile.release]\nlto = true\n";
        let published = [("thalweg".to_owned(), "0.1.0".to_owned())];
        let text = manifest(root, &["hello"], Path::new("/s"), &published).unwrap();
        assert!(text.contains("members = [\"hello\"]") && text.contains("bytes = \"1.12\""), "{text}");
        assert!(text.contains("\nthalweg = { version = \"0.1.0\" }\n"), "{text}");
        assert!(text.ends_with("[patch.crates-io]\nthalweg = { path = \"/s/thalweg-0.1.0\" }\n"), "{text}");
        assert!(!text.contains("profile") && !text.contains("crates/"), "{text}");
    }

    #[test]
    fn packages_from_other_sources_are_reported() {
        let package = |name: &str, folder: &str| {
            let manifest = format!("{folder}/{name}/Cargo.toml");
            serde_json::json!({"name": name, "manifest_path": manifest})
        };
        let check = |packages: &[serde_json::Value]| {
            let metadata = serde_json::json!({"packages": packages});
            only_packages(&serde_json::from_value(metadata).unwrap(), Path::new("/s")).is_ok()
        };
        let both = [package("thalweg", "/s"), package("thalweg-tonic", "/s"), package("bytes", "/r")];
        assert!(check(&both));
        assert!(!check(&both[..1]));
        assert!(!check(&[&both[..], &[package("thalweg-web", "/w")]].concat()));
    }
}
