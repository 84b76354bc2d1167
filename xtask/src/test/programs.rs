//! Published programs on `thalweg-tonic`: their sources from the registry, with only the `tonic` entry of their
//! manifests changed; and the same programs unchanged, with ours in place of tonic in the whole tree by `[patch]`. Each
//! runs against a third-party server if there is one, and against stubs on tonic and on ours.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::etcd;
use crate::failure::Result;
use crate::job::Job;
use crate::server::{Server, free_port};
use crate::{published, tools, workspace};

/// Crates whose `tonic` entry is changed. The suite's manifests have their versions.
const PROGRAMS: &[&str] = &["etcd-client", "opentelemetry-otlp", "qdrant-client"];

/// Drivers that run against the stubs. `served` uses unchanged crates.
const WITH_STUBS: &[&str] = &["telemetry", "qdrant", "served"];

/// The suite's manifests, by the crate used as `tonic`.
const OURS: &str = "thalweg-tonic";
const PATCHED: &str = "patched";
const THEIRS: &str = "tonic";

pub(super) fn check() -> Result<String> {
    tools::protoc()?;
    tools::etcd()?;
    let versions = published::download(PROGRAMS, &suite(THEIRS))?;
    let [ours, patched, theirs] = [build(OURS)?, build(PATCHED)?, build(THEIRS)?];
    check_tree()?;
    let mut runs = 0;
    for client in [&ours, &patched, &theirs] {
        with_etcd(client)?;
        runs += 1;
        for server in [&ours, &patched, &theirs] {
            runs += with_stubs(server, client)?;
        }
    }
    Ok(format!("{}: {runs} runs", versions.join(", ")))
}

fn suite(stack: &str) -> PathBuf {
    workspace::suites().join("programs").join(stack)
}

/// Builds the suite's program on this stack.
fn build(stack: &str) -> Result<PathBuf> {
    let target = published::build_folder();
    let build = Job::cargo("build --locked --quiet --target-dir").arg(&target);
    build.directory(suite(stack)).builds(15).run()?;
    Ok(target.join("debug").join(format!("programs-{stack}")))
}

/// Checks that the patched program has no crate tonic of the registry, nor what only that needs.
fn check_tree() -> Result<()> {
    let tree =
        Job::cargo("tree --locked --edges normal --prefix none --format {p}").directory(suite(PATCHED));
    let tree = tree.quiet_text()?;
    let packages: BTreeSet<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    let tonics: Vec<&&str> = packages.iter().filter(|package| package.starts_with("tonic v")).collect();
    ensure!(tonics.len() == 1 && tonics[0].contains("crates/tonic/patch"), "not patched: {tonics:?}");
    Ok(())
}

/// Runs `program` with a new etcd, whose data are removed before its next start.
fn with_etcd(program: &Path) -> Result<()> {
    let port = free_port()?;
    let server = Server::start_at(&etcd::serve(&port.to_string(), "etcd")?, port)?;
    drive(program, "etcd", &server)?;
    server.stop()
}

/// Runs all drivers against the stubs and returns their number.
fn with_stubs(server: &Path, client: &Path) -> Result<usize> {
    let server = Server::start(|port| Job::new(server).words(&format!("serve 127.0.0.1:{port}")))?;
    WITH_STUBS.iter().try_for_each(|name| drive(client, name, &server))?;
    server.stop()?;
    Ok(WITH_STUBS.len())
}

fn drive(program: &Path, name: &str, server: &Server) -> Result<()> {
    Job::new(program).words(&format!("drive {name} {}", server.address())).seconds(60).run()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn manifest(stack: &str) -> String {
        fs::read_to_string(suite(stack).join("Cargo.toml")).expect("the manifest")
    }

    #[test]
    fn manifests_differ_only_in_tonic() {
        let is_other =
            |line: &str| line.starts_with("tonic = ") || line.contains(&format!("programs-{OURS}"));
        let ours = manifest(OURS);
        let (before, after) = ours.split_once("[patch.crates-io]\n").expect("it takes the changed sources");
        let patches: Vec<&str> = after.lines().take_while(|line| !line.is_empty()).collect();
        let patch = |name: &&str| format!("{name} = {{ path = \"../../../../target/programs/{name}\" }}");
        assert_eq!(patches, PROGRAMS.iter().map(patch).collect::<Vec<_>>());
        let rest = after.split_once("\n\n").expect("it goes on").1;
        let theirs = manifest(THEIRS);
        let ours = format!("{before}{rest}");
        let pairs = ours.lines().skip_while(|line| line.starts_with('#'));
        let pairs = pairs.zip(theirs.lines().skip_while(|line| line.starts_with('#')));
        let differing: Vec<_> = pairs.filter(|(one, other)| one != other).collect();
        assert_eq!(ours.lines().count(), theirs.lines().count() + 1, "and a line more of comment");
        assert!(differing.iter().all(|(one, _)| is_other(one)), "{differing:#?}");
    }

    #[test]
    fn patched_manifest_has_one_table_more() {
        let patched = manifest(PATCHED);
        let (before, patch) = patched.split_once("\n[patch.crates-io]\n").expect("the table");
        assert_eq!(patch, "tonic = { path = \"../../../../crates/tonic/patch\" }\n");
        let theirs = manifest(THEIRS).replace(&format!("programs-{THEIRS}"), &format!("programs-{PATCHED}"));
        // A pin of tonic itself would not take the patch.
        let theirs = theirs.replace("tonic = { version = \"=", "tonic = { version = \"");
        let lines = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(before), lines(&theirs));
    }

    #[test]
    fn page_names_all_programs() {
        let page = fs::read_to_string(workspace::root().join("docs/tonic.md")).expect("the page");
        let manifest = manifest(OURS);
        let pinned = manifest.lines().filter_map(|line| {
            let (name, rest) = line.split_once(" = ")?;
            Some((name, rest.split_once("\"=")?.1.split('"').next()?))
        });
        let pinned: Vec<_> = pinned.collect();
        assert!(PROGRAMS.iter().all(|name| pinned.iter().any(|(pinned, _)| pinned == name)), "{pinned:?}");
        for (name, version) in pinned {
            assert!(page.contains(&format!("| `{name}` {version} |")), "docs/tonic.md: {name} {version}");
        }
    }
}
