//! Published programs on `thalweg-tonic`: their sources from the registry, with only the `tonic` entry of their
//! manifests changed; and the same programs unchanged, with ours in place of tonic in the whole tree by `[patch]`. Each
//! runs against a third-party server if there is one, and against stubs on tonic and on ours. What they print is the
//! same on all stacks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::failure::Result;
use crate::job::Job;
use crate::programs::{OURS, PATCHED, ProgramServer, THEIRS, WITH_OTHERS, WITH_STUBS, build, suite};
use crate::{published, tools};

/// Crates whose `tonic` entry is changed. The suite's manifests have their versions.
const PROGRAMS: &[&str] = &[
    "arrow-flight",
    "console-subscriber",
    "containerd-client",
    "etcd-client",
    "opentelemetry-otlp",
    "qdrant-client",
    "spiffe",
    "tonic-middleware",
    "tonic-xds",
    "xds-client",
];

pub(super) fn check() -> Result<String> {
    tools::protoc()?;
    tools::etcd()?;
    tools::containerd()?;
    let versions = published::download(PROGRAMS, &suite(THEIRS))?;
    // Results of tonic come first, so that others are compared with them.
    let stacks = [build(THEIRS, "dev")?, build(PATCHED, "dev")?, build(OURS, "dev")?];
    check_tree()?;
    let mut outputs = Outputs::default();
    for client in &stacks {
        for name in WITH_OTHERS {
            outputs.drive(client, &ProgramServer::other(name, "")?, name)?;
        }
        for server in &stacks {
            let server = ProgramServer::stubs(server, "")?;
            WITH_STUBS.iter().try_for_each(|name| outputs.drive(client, &server, name))?;
        }
    }
    Ok(format!("{}: {} runs", versions.join(", "), outputs.runs))
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

/// Output of the first run of each program.
#[derive(Default)]
struct Outputs {
    first: BTreeMap<&'static str, String>,
    runs: usize,
}

impl Outputs {
    /// Runs the program `name` on the stack `client`, and compares what it prints.
    fn drive(&mut self, client: &Path, server: &ProgramServer, name: &'static str) -> Result<()> {
        let job = Job::new(client).arg("drive").arg(name).arg(server.address(name)).seconds(60);
        self.runs += 1;
        self.compare(name, &job.text()?).map_err(|why| failed!("`{job}` {why}"))
    }

    fn compare(&mut self, name: &'static str, printed: &str) -> Result<(), String> {
        let first = self.first.entry(name).or_insert_with(|| printed.to_owned());
        if *first == printed { Ok(()) } else { Err(format!("printed\n{printed}but on tonic alone\n{first}")) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace;

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
        // A dependency of another, with the version of the lock file.
        let is_pinned = |name: &str| name == "xds-client" || pinned.iter().any(|(pinned, _)| *pinned == name);
        assert!(PROGRAMS.iter().all(|name| is_pinned(name)), "{pinned:?}");
        for name in PROGRAMS {
            assert!(page.contains(&format!("`{name}`")), "docs/tonic.md: {name}");
        }
        for (name, version) in pinned {
            assert!(page.contains(&format!("| `{name}` {version} |")), "docs/tonic.md: {name} {version}");
        }
    }

    #[test]
    fn other_results_than_on_tonic_fail() {
        let mut outputs = Outputs::default();
        let mut compare = |name, printed: &str| outputs.compare(name, printed);
        assert_eq!(compare("a", "1\n"), Ok(()));
        assert_eq!(compare("a", "1\n"), Ok(()));
        assert_eq!(compare("b", "2\n"), Ok(()));
        assert_eq!(compare("a", "2\n"), Err("printed\n2\nbut on tonic alone\n1\n".to_owned()));
    }

    #[test]
    fn all_programs_are_run() {
        let source =
            fs::read_to_string(workspace::suites().join("programs/src/main.rs")).expect("the source");
        let (_, drive) = source.split_once("async fn drive(").expect("the function");
        let known = drive.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once("\" => "));
        let known: BTreeSet<&str> = known.map(|(name, _)| name).collect();
        let run: BTreeSet<&str> = WITH_STUBS.iter().chain(WITH_OTHERS).copied().collect();
        assert_eq!(known, run);
    }
}
