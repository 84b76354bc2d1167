//! The checks that cargo itself runs.

use std::path::PathBuf;

use super::extent;
use crate::job::{Failure, Job, Log, TIMED_OUT, is_installed};
use crate::metadata::Metadata;
use crate::{tools, workspace};

/// What can be switched on and off, and is held to the same as the rest.
const FEATURES: &str = "thalweg/brotli,thalweg/buffa,thalweg/opentelemetry,thalweg/tls,\
     thalweg/tls-webpki-roots,thalweg/tower,thalweg/web,thalweg/zstd,thalweg-build/buffa,\
     thalweg-services/channelz,thalweg-services/health,thalweg-services/reflection,\
     thalweg-web/brotli,thalweg-web/zstd";

pub(super) fn format(log: &Log) -> Result<String, Failure> {
    component("cargo-fmt", "rustfmt")?;
    Job::cargo("fmt --all --check").run(log)?;
    Ok("formatted".to_owned())
}

/// Clippy as the manifest configures it. `incompatible_msrv`, which is on by default, is what holds our own code to
/// `rust-version`: no second toolchain is needed for that.
pub(super) fn lints(log: &Log) -> Result<String, Failure> {
    component("cargo-clippy", "clippy")?;
    let all = "clippy --workspace --all-targets --no-deps --features";
    Job::cargo(all).arg(FEATURES).words("-- -D warnings").builds().minutes(30).run(log)?;
    // Without the optional features of the libraries.
    let bare = Job::cargo("clippy --package thalweg --package thalweg-build --lib --no-deps -- -D warnings");
    bare.builds().minutes(30).run(log)?;
    // A link of the documentation that leads nowhere is a warning too.
    let documents = Job::cargo("doc --workspace --lib --no-deps --features").arg(FEATURES);
    documents.env("RUSTDOCFLAGS", "-D warnings").builds().minutes(30).run(log)?;
    if !extent::is_long() {
        return Ok("no warnings, with the features and without".to_owned());
    }
    let count = each_feature(log)?;
    Ok(format!("no warnings, with the features, without, and with each of {count} alone"))
}

/// Each feature of each package for the registry: alone, and all of a package together. How many there are.
///
/// Only rustc's lints count: what clippy thinks of a type or a match changes with what is left of it.
fn each_feature(log: &Log) -> Result<usize, Failure> {
    let lint = |package: &str, features: &str| {
        let job = Job::cargo("clippy --lib --no-deps --no-default-features --package").arg(package);
        let job =
            job.arg("--features").arg(features).words("-- -D warnings -A clippy::all -A clippy::pedantic");
        job.builds().minutes(30).run(log)
    };
    let metadata = Metadata::load(log)?;
    let mut count = 0;
    for package in metadata.member_packages().filter(|package| package.is_published && package.is_library) {
        // Those with an underscore are for others of the same manifest.
        for feature in package.features.keys().filter(|feature| !feature.starts_with('_')) {
            lint(&package.name, feature)?;
        }
        lint(&package.name, &package.features.keys().cloned().collect::<Vec<_>>().join(","))?;
        count += package.features.len();
    }
    Ok(count)
}

/// All tests. The summary lines of cargo's own runner are passed on as they are.
pub(super) fn tests(log: &Log) -> Result<String, Failure> {
    // Tests open pages in the browser that this names: of the lab, of runs, of comparisons.
    let browser = tools::browser(log)?;
    // Those of the command complete words in these shells.
    tools::debian("fish zsh", &["fish", "zsh"], log)?;
    tests_built().run(log)?;
    let job = Job::cargo("test --workspace --no-fail-fast --features").arg(FEATURES);
    // Two days are more than all that `--long` asks for.
    let minutes = if extent::is_long() { 2 * 24 * 60 } else { 40 };
    // The command's tests would build it once more, with the features that it has without the workspace.
    let codec = workspace::target().join("debug/thalweg-codec");
    let job = job.env("CHROMIUM", browser).env("THALWEG_CODEC", codec).minutes(minutes);
    let output = job.output(log)?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = stdout.lines().filter(|line| line.starts_with("test result:")).collect();
    for line in lines.iter().filter(|line| !line.contains(" 0 passed; 0 failed")) {
        println!("{line}");
    }
    let passed: u64 = lines.iter().map(|line| count(line, "passed")).sum();
    let failed: u64 = lines.iter().map(|line| count(line, "failed")).sum();
    match (output.status.success(), passed) {
        (true, 1..) => Ok(format!("{passed} tests")),
        (true, 0) => Err(Failure::failed("no test ran")),
        (false, _) => {
            // The log is long, and its end is seldom where the failure stands.
            for line in failures(&stdout) {
                println!("{line}");
            }
            let counts = format!("{failed} of {} tests failed", passed + failed);
            if output.status.code() != Some(TIMED_OUT) {
                return Err(Failure::failed(format!("{counts}, or a build did")));
            }
            let slow: Vec<&str> = unended(&stdout).collect();
            Err(Failure::failed(format!(
                "they did not end within {minutes} min; {counts}; slow or stuck: {}",
                if slow.is_empty() { "none that the runner named".to_owned() } else { slow.join(", ") }
            )))
        }
    }
}

/// What the runner says of the tests that failed: each binary prints it between a line `failures:` and its summary.
fn failures(stdout: &str) -> impl Iterator<Item = &str> {
    let mut within = false;
    stdout.lines().filter(move |line| {
        match *line {
            "failures:" => within = true,
            line if line.starts_with("test result:") => within = false,
            _ => {}
        }
        within
    })
}

/// The tests that the runner calls slow and never says to have ended.
fn unended(stdout: &str) -> impl Iterator<Item = &str> {
    let slow = stdout
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" has been running for over 60 seconds"));
    slow.filter(move |test| !stdout.lines().any(|line| line.starts_with(&format!("test {test} ... "))))
}

/// Builds all tests, and runs none.
pub(super) fn tests_built() -> Job {
    Job::cargo("test --workspace --no-run --features").arg(FEATURES).builds().minutes(40)
}

pub(super) fn release(log: &Log) -> Result<String, Failure> {
    let path = thalweg(log)?;
    let size = std::fs::metadata(&path)?.len();
    Ok(format!(
        "{} ({:.1} MB)",
        path.strip_prefix(workspace::root()).unwrap_or(&path).display(),
        size as f64 / 1e6
    ))
}

/// The command `thalweg` in release, built if it is not up to date.
pub(crate) fn thalweg(log: &Log) -> Result<PathBuf, Failure> {
    thalweg_built().run(log)?;
    Ok(workspace::target().join("release/thalweg"))
}

/// Builds it as a user does, with the features of the command alone.
pub(super) fn thalweg_built() -> Job {
    Job::cargo("build --release --package thalweg-cli --bin thalweg").builds().minutes(30)
}

/// An example of the workspace, as the tests built it: in release it would need all its dependencies a second time.
pub(crate) fn example(name: &str, log: &Log) -> Result<PathBuf, Failure> {
    Ok(examples(&[name], log)?.join(name))
}

/// The folder that has these examples, as the tests built them.
pub(super) fn examples(names: &[&str], log: &Log) -> Result<PathBuf, Failure> {
    let build = Job::cargo("build --workspace --features").arg(FEATURES);
    let build = names.iter().fold(build, |build, name| build.arg("--example").arg(name));
    build.builds().minutes(30).run(log)?;
    Ok(workspace::target().join("debug/examples"))
}

/// A program of the workspace, as the tests built it.
pub(super) fn program(name: &str, log: &Log) -> Result<PathBuf, Failure> {
    let build = Job::cargo("build --workspace --features").arg(FEATURES);
    build.words("--bin").arg(name).builds().minutes(30).run(log)?;
    Ok(workspace::target().join("debug").join(name))
}

/// An example of a package in release, for measuring.
pub(crate) fn release_example(package: &str, name: &str, log: &Log) -> Result<PathBuf, Failure> {
    let build = Job::cargo("build --release --package").arg(package).arg("--example").arg(name);
    build.builds().minutes(30).run(log)?;
    Ok(workspace::target().join("release/examples").join(name))
}

fn component(program: &str, name: &str) -> Result<(), Failure> {
    if is_installed(program) {
        return Ok(());
    }
    Err(Failure::missing(format!(
        "{program}; where rustup manages the toolchain, `rustup component add {name}`"
    )))
}

/// The number before `noun` in a line such as `test result: ok. 12 passed; 0 failed; 1 ignored`.
fn count(line: &str, noun: &str) -> u64 {
    let words: Vec<&str> = line.split([' ', ';']).filter(|word| !word.is_empty()).collect();
    let pair = words.windows(2).find(|pair| pair[1] == noun);
    pair.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{count, failures, unended};

    #[test]
    fn what_failed_is_picked_out() {
        let stdout = "test a ... ok\nfailures:\n\n---- b stdout ----\nit is 2\n\ntest result: FAILED.\ntest c ... ok\n";
        assert_eq!(
            failures(stdout).collect::<Vec<_>>(),
            ["failures:", "", "---- b stdout ----", "it is 2", ""]
        );
    }

    #[test]
    fn what_never_ends_is_named() {
        let slow = |test| format!("test {test} has been running for over 60 seconds\n");
        let stdout = format!("test a ... ok\n{}{}test b::c ... ok\n", slow("b::c"), slow("b::d"));
        assert_eq!(unended(&stdout).collect::<Vec<_>>(), ["b::d"]);
    }

    #[test]
    fn summary_lines_are_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!((count(line, "passed"), count(line, "failed"), count(line, "ignored")), (12, 3, 1));
        assert_eq!(count("test result: ok.", "passed"), 0);
    }
}
