//! `cargo xtask api`: what is public in the libraries for users, an item a line, in `api`. A test compares, so that
//! a change of what is promised stands in the diff that is reviewed.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::failure::Result;
use crate::job::Job;
use crate::metadata::Metadata;
use crate::{files, log, workspace};

/// Those whose versions are a promise; see `docs/upgrading.md`. Of `thalweg-engine` and `thalweg-http2` that is what
/// `thalweg` shows under its own name.
const LIBRARIES: &[&str] = &[
    "thalweg",
    "thalweg-build",
    "thalweg-engine",
    "thalweg-http2",
    "thalweg-link",
    "thalweg-protobuf",
    "thalweg-services",
    "thalweg-tonic",
    "thalweg-web",
];

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.finish()?;
    log::start("api")?;
    for Listing { library, text } in listings()? {
        let path = recorded(library);
        files::write(&path, &text)?;
        println!("{:>5} items  {}", text.lines().count(), path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the lists are what is there.
pub(crate) fn check() -> Result<String> {
    let mut changed = Vec::new();
    let mut items = 0;
    for Listing { library, text } in listings()? {
        items += text.lines().count();
        if fs::read_to_string(recorded(library)).unwrap_or_default() != text {
            let found = workspace::output().join(format!("api-{library}.txt"));
            fs::write(&found, text)?;
            // It ends with 1 where it finds what it looks for.
            Job::new("diff").words("--unified=0 --new-file").arg(recorded(library)).arg(found).status()?;
            changed.push(library);
        }
    }
    if changed.is_empty() {
        return Ok(format!("{items} public items of {} libraries, as in api", LIBRARIES.len()));
    }
    Err(failed!(
        "other public items than api has, in {}: the lines are in {}. Where they are meant, `cargo xtask api` writes \
         them anew",
        changed.join(", "),
        log::path().display()
    ))
}

struct Listing {
    library: &'static str,
    text: String,
}

fn recorded(library: &str) -> PathBuf {
    workspace::root().join("api").join(format!("{library}.txt"))
}

fn listings() -> Result<Vec<Listing>> {
    let metadata = Metadata::load()?;
    // Stable rustdoc writes JSON only with RUSTC_BOOTSTRAP, with which build scripts run again: it has its own folder.
    let target = workspace::target().join("api");
    let lister = workspace::suites().join("api");
    let build = Job::cargo("build --locked --quiet").directory(&lister).env("CARGO_TARGET_DIR", &target);
    build.builds(10).run()?;
    // Of this one Cargo takes features by their own names only, as it does where one package is documented.
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
    let list = |library: &&'static str| -> Result<Listing> {
        let json = target.join("doc").join(format!("{}.json", library.replace('-', "_")));
        let text = Job::new(target.join("debug/api-listing")).arg(json).quiet_text().map_err(|failure| {
            missing!(
                "a list of what is public in {library}: {failure}. rustdoc's JSON changes with Rust, and the program \
                 that reads it knows one form of it: see {}",
                log::path().display()
            )
        })?;
        Ok(Listing { library, text })
    };
    LIBRARIES.iter().map(list).collect()
}

/// Not what tests need, nor what only other features name.
fn is_for_users(feature: &str) -> bool {
    feature != "testing" && !feature.starts_with('_')
}
