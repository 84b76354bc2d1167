//! `cargo xtask api`: lists the public items of the libraries in `api`, one per line. A test compares the lists, so a
//! change of the promised API appears in the reviewed diff.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::failure::Result;
use crate::job::Job;
use crate::metadata::Metadata;
use crate::{files, log, workspace};

/// Those whose versions are a promise; see `docs/upgrading.md`.
const LIBRARIES: &[&str] = &[
    "thalweg",
    "thalweg-build",
    "thalweg-core",
    "thalweg-engine",
    "thalweg-http2",
    "thalweg-kubernetes",
    "thalweg-link",
    "thalweg-openapi",
    "thalweg-protobuf",
    "thalweg-protobuf-text",
    "thalweg-services",
    "thalweg-tonic",
    "thalweg-web",
];

/// Only items of these that the others re-export are promised.
const PARTS: &[&str] = &["thalweg-core", "thalweg-engine", "thalweg-http2"];

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.finish()?;
    log::start("api")?;
    for (path, items) in write(&workspace::root().join("api"))? {
        println!("{items:>5} items  {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks that the lists match the code.
pub(crate) fn check() -> Result<String> {
    let found = files::create_empty(workspace::output().join("api"))?;
    let items: usize = write(&found)?.iter().map(|(_, items)| items).sum();
    let diff = Job::new("diff").words("--unified=0 --new-file --recursive api").arg(found);
    ensure!(
        diff.status()?.success(),
        "public items differ from api/; see {}. If that is intended, run `cargo xtask api`",
        log::path().display()
    );
    Ok(format!("{items} public items of {} libraries match api/", LIBRARIES.len()))
}

/// Writes the list of each library to `folder` and returns its number of items.
fn write(folder: &Path) -> Result<Vec<(PathBuf, usize)>> {
    let metadata = Metadata::load()?;
    // Stable rustdoc writes JSON only with RUSTC_BOOTSTRAP, which makes build scripts run again: use a separate folder.
    let target = workspace::target().join("api");
    let lister = workspace::suites().join("api");
    let build = Job::cargo("build --locked --quiet").directory(&lister).env("CARGO_TARGET_DIR", &target);
    build.builds(10).run()?;
    // A single package is documented: Cargo then takes its features by their plain names only.
    let (tonic, others): (Vec<&str>, Vec<&str>) =
        LIBRARIES.iter().partition(|name| **name == "thalweg-tonic");
    for (libraries, is_one) in [(others, false), (tonic, true)] {
        let mut document = Job::cargo("doc --lib --no-deps --quiet");
        for library in libraries {
            let package = metadata.package(library)?;
            document = document.arg("--package").arg(library);
            for feature in package.features.keys().filter(|name| is_for_users(name)) {
                let package = if is_one { String::new() } else { format!("{library}/") };
                document = document.arg("--features").arg(package + feature);
            }
        }
        let document =
            document.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json --cap-lints allow");
        let document = document.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", &target);
        document.builds(20).run()?;
    }
    let json = |library: &str| target.join("doc").join(format!("{}.json", library.replace('-', "_")));
    let list = |library: &&str| {
        let mut listing = Job::new(target.join("debug/api-listing")).arg(json(library));
        if PARTS.contains(library) {
            let others = LIBRARIES.iter().filter(|other| !PARTS.contains(other));
            listing = listing.args(others.map(|other| json(other)));
        }
        let text = listing.quiet_text().map_err(|failure| {
            missing!(
                "list of public items of {library}: {failure}. The format of rustdoc's JSON changes with Rust, and \
                 the program that reads it supports one format; see {}",
                log::path().display()
            )
        })?;
        let path = folder.join(format!("{library}.txt"));
        fs::write(&path, &text)?;
        Ok((path, text.lines().count()))
    };
    LIBRARIES.iter().map(list).collect()
}

/// Excludes the features for tests and those that only other features name.
fn is_for_users(feature: &str) -> bool {
    feature != "testing" && !feature.starts_with('_')
}
