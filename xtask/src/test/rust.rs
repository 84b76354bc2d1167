//! The checks run by cargo itself.

use std::fmt::Display;
use std::path::PathBuf;
use std::process::Command;

use crate::failure::Result;
use crate::job::{Job, TIMED_OUT, is_installed};
use crate::metadata::{Metadata, Package};
use crate::server::Server;
use crate::{published, tools, workspace};

/// The optional features to test.
pub(super) const FEATURES: &str = "thalweg/brotli,thalweg/buffa,thalweg/dns,thalweg/opentelemetry,thalweg/socks,\
     thalweg/tls,thalweg/tls-webpki-roots,thalweg/tower,thalweg/web,thalweg/zstd,thalweg-build/buffa,\
     thalweg-services/channelz,thalweg-services/health,thalweg-services/orca,thalweg-services/reflection,\
     thalweg-web/brotli,thalweg-web/zstd";

/// The package for `[patch]`, with the sources of `thalweg-tonic`.
const PATCH: &str = "tonic";

/// Set for a step whose programs the step `build` has already built in the same run. Such a step starts no `cargo`,
/// which could wait for another build's lock.
pub(super) const IS_BUILT: &str = "THALWEG_TEST_IS_BUILT";

pub(super) fn format() -> Result<String> {
    component("cargo-fmt", "rustfmt")?;
    Job::cargo("fmt --all --check").run()?;
    Ok("formatted".to_owned())
}

/// Runs rustdoc, where a broken link is a warning, rustc without the optional features, and clippy for examples that no
/// step runs.
pub(super) fn docs() -> Result<String> {
    let documents = Job::cargo("doc --workspace --lib --no-deps --features").arg(FEATURES);
    documents.env("RUSTDOCFLAGS", "-D warnings").builds(30).run()?;
    let examples = Job::cargo("clippy --workspace --examples --no-deps --features").arg(FEATURES);
    let bare = Job::cargo("clippy --package thalweg --package thalweg-build --lib --no-deps");
    for job in [examples, bare] {
        job.words("-- -D warnings").builds(30).run()?;
    }
    Ok("no warnings".to_owned())
}

/// Checks each published package, and the one for `[patch]`, without features, with each feature alone, and with all.
///
/// Only rustc's lints count: clippy's lints on types and matches vary with the enabled features.
pub(super) fn features() -> Result<String> {
    let metadata = Metadata::load()?;
    let packages = metadata.published().filter(|package| package.is_library());
    let mut count = 0;
    for Package { name, version, features, .. } in packages.chain([metadata.member(PATCH)?]) {
        let all = features.keys().cloned().collect::<Vec<_>>().join(",");
        // Features with an underscore are for other features of the manifest.
        let single = features.keys().filter(|feature| !feature.starts_with('_'));
        for set in [""].into_iter().chain(single.map(String::as_str)).chain([&*all]) {
            // With its version: the workspace has two packages `tonic`.
            let job = Job::cargo("clippy --lib --no-deps --no-default-features --package");
            let job = job.arg(format!("{name}@{version}")).arg("--features").arg(set);
            job.words("-- -D warnings -A clippy::all -A clippy::pedantic").builds(30).run()?;
            count += 1;
        }
    }
    Ok(format!("no warnings with {count} sets of features"))
}

/// Runs unit, integration and doc tests.
pub(super) fn tests() -> Result<String> {
    // No browser: a test that needs one must be marked `#[ignore]`.
    let tests = workspace_cargo(TEST).arg(FEATURES).env("CHROMIUM", "/ignore-tests-that-open-a-browser");
    // Examples in the sources of the package for `[patch]` name `thalweg-tonic`.
    let doc_tests = workspace_cargo("test --workspace --no-fail-fast --doc --exclude").arg(PATCH);
    let doc_tests = doc_tests.arg("--features").arg(FEATURES);
    run_tests(&[tests, doc_tests], 40)
}

/// Runs the tests of `crates/tonic-tests` on the package for `[patch]`, in a workspace of their own.
pub(super) fn patched() -> Result<String> {
    let tests = Job::cargo("test --locked --no-fail-fast --target-dir").arg(published::build_folder());
    run_tests(&[tests.directory(workspace::root().join("crates/tonic-tests/patched"))], 30)
}

/// Runs the tests that need an external program.
pub(super) fn ignored() -> Result<String> {
    let browser = tools::browser()?;
    tools::debian("dnsmasq-base fish zsh valgrind", &["dnsmasq", "fish", "zsh", "valgrind"])?;
    if !is_installed("go") {
        return Err(missing!("missing `go` on the PATH"));
    }
    let job = workspace_cargo(TEST).arg(FEATURES).words("-- --ignored").env("CHROMIUM", browser);
    run_tests(&[job], 20)
}

/// Runs simulations and fuzzing longer than `tests` does.
pub(super) fn simulations() -> Result<String> {
    let set = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let (seeds, seconds) = (set("THALWEG_SIM_SEEDS", "100000"), set("THALWEG_FUZZ_SECONDS", "60"));
    let job = workspace_cargo(TEST).arg(FEATURES).arg("--").words(SIMULATIONS);
    let job = job.env("THALWEG_SIM_SEEDS", &seeds).env("THALWEG_FUZZ_SECONDS", &seconds);
    // Two days, for runs with larger values of the variables.
    let account = run_tests(&[job], 2 * 24 * 60)?;
    Ok(format!("{account}: {seeds} seeds of each simulation, {seconds} s of each fuzz target"))
}

/// All targets except the examples: they have no tests, `docs` checks them, and linking them takes a minute.
const TEST: &str = "test --workspace --no-fail-fast --lib --bins --tests --features";
/// Parts of the names of simulations and fuzz targets.
const SIMULATIONS: &str = "grpc_peers http2_peers policy::models:: fuzz::";

/// Runs tests and passes on the summary lines of cargo's runner verbatim.
fn run_tests(jobs: &[Job], minutes: u64) -> Result<String> {
    // Otherwise the command's tests would build this program again, with its features outside the workspace.
    let codec = workspace::target().join("debug/thalweg-codec");
    let mut stdout = String::new();
    let (mut success, mut timed_out) = (true, false);
    for job in jobs {
        let captured = job.clone().env("THALWEG_CODEC", &codec).minutes(minutes).output()?;
        stdout.push_str(&captured.out);
        success &= captured.status.success();
        timed_out |= captured.status.code() == Some(TIMED_OUT);
    }
    let lines: Vec<&str> = stdout.lines().filter(|line| line.starts_with("test result:")).collect();
    for line in lines.iter().filter(|line| !line.contains(" 0 passed; 0 failed")) {
        println!("{line}");
    }
    let sum = |noun| lines.iter().map(|line| count(line, noun)).sum::<u64>();
    let (passed, failed, ignored) = (sum("passed"), sum("failed"), sum("ignored"));
    match (success, passed) {
        (true, 1..) if ignored == 0 => Ok(format!("{passed} tests")),
        (true, 1..) => Ok(format!("{passed} tests; {ignored} ignored, which the step `ignored` runs")),
        (true, 0) => Err(failed!("no test ran")),
        (false, _) => {
            // The log is long, and a failure is rarely at its end.
            for line in failures(&stdout) {
                println!("{line}");
            }
            let counts = format!("{failed} of {} tests failed", passed + failed);
            ensure!(timed_out, "{counts}, or a build failed");
            let slow: Vec<&str> = unfinished(&stdout).collect();
            Err(failed!(
                "tests did not finish within {minutes} min; {counts}; slow or stuck: {}",
                if slow.is_empty() { "none reported".to_owned() } else { slow.join(", ") }
            ))
        }
    }
}

/// The runner's output for failed tests: each test binary prints it between a line `failures:` and its summary.
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

/// The tests that the runner reported as slow and never as finished.
fn unfinished(stdout: &str) -> impl Iterator<Item = &str> {
    let slow = stdout
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" has been running for over 60 seconds"));
    slow.filter(move |test| !stdout.lines().any(|line| line.starts_with(&format!("test {test} ... "))))
}

/// Cargo for tests. clippy's driver compiles our own crates, which avoids a second compilation for the lints. It is as
/// fast as rustc, and so are the programs: it only skips MIR optimisations.
pub(super) fn workspace_cargo(words: &str) -> Job {
    const DRIVER: &str = "clippy-driver";
    // rustup has a proxy of this name even if the component is not installed.
    let is_there =
        Command::new(DRIVER).arg("--version").output().is_ok_and(|captured| captured.status.success());
    let job = Job::cargo(words);
    if is_there { job.env("RUSTC_WORKSPACE_WRAPPER", DRIVER) } else { job }
}

/// Builds all tests without running them.
pub(super) fn tests_built() -> Job {
    workspace_cargo(TEST).arg(FEATURES).arg("--no-run").builds(40)
}

/// The command `thalweg` as built for tests.
pub(crate) fn command() -> Result<PathBuf> {
    program("thalweg")
}

/// Starts `thalweg serve` with these flags, as built for tests.
pub(super) fn serve(flags: &str) -> Result<Server> {
    let thalweg = command()?;
    Server::start(|port| Job::new(thalweg).words(&format!("serve --listen 127.0.0.1:{port} {flags}")))
}

/// The command `thalweg` in release mode, for measuring.
pub(crate) fn release_command() -> Result<PathBuf> {
    release_built().run()?;
    Ok(workspace::target().join("release/thalweg"))
}

/// Builds the command like a user does, with only its own features.
pub(super) fn release_built() -> Job {
    Job::cargo("build --release --package thalweg-cli --bin thalweg").builds(30)
}

/// An example of the workspace, as built for tests.
pub(crate) fn example(name: &str) -> Result<PathBuf> {
    Ok(examples(&[name])?.join(name))
}

/// The folder with these examples, as built for tests.
pub(super) fn examples(names: &[impl Display]) -> Result<PathBuf> {
    let words: Vec<String> = names.iter().map(|name| format!("--example {name}")).collect();
    built(&words.join(" "))?;
    Ok(workspace::target().join("debug/examples"))
}

/// A program of the workspace, as built for tests.
pub(super) fn program(name: &str) -> Result<PathBuf> {
    built(&format!("--bin {name}"))?;
    Ok(workspace::target().join("debug").join(name))
}

/// Builds these targets with the features of the tests, unless the step `build` already has.
fn built(targets: &str) -> Result<()> {
    if std::env::var_os(IS_BUILT).is_some() {
        return Ok(());
    }
    workspace_cargo("build --workspace --features").arg(FEATURES).words(targets).builds(30).run()
}

/// An example of a package in release mode, for measuring.
pub(crate) fn release_example(package: &str, name: &str) -> Result<PathBuf> {
    let build = Job::cargo("build --release --package").arg(package).arg("--example").arg(name);
    build.builds(30).run()?;
    Ok(workspace::target().join("release/examples").join(name))
}

/// Builds a binary of the workspace with cargo's profile `release`.
pub(crate) fn release_program(package: &str, name: &str) -> Result<PathBuf> {
    let build = Job::cargo("build --release --package").arg(package).arg("--bin").arg(name);
    build.builds(30).run()?;
    Ok(workspace::target().join("release").join(name))
}

pub(super) fn component(program: &str, name: &str) -> Result<()> {
    if is_installed(program) {
        return Ok(());
    }
    Err(failed!("{program} is missing; where rustup manages the toolchain, `rustup component add {name}`"))
}

/// The number before `noun` in a line such as `test result: ok. 12 passed; 0 failed; 1 ignored`.
fn count(line: &str, noun: &str) -> u64 {
    let words: Vec<&str> = line.split([' ', ';']).filter(|word| !word.is_empty()).collect();
    let pair = words.windows(2).find(|pair| pair[1] == noun);
    pair.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{count, failures, unfinished};

    #[test]
    fn failed_tests_are_extracted() {
        let stdout = "test a ... ok\nfailures:\n\n---- b stdout ----\nit is 2\n\ntest result: FAILED.\ntest c ... ok\n";
        assert_eq!(
            failures(stdout).collect::<Vec<_>>(),
            ["failures:", "", "---- b stdout ----", "it is 2", ""]
        );
    }

    #[test]
    fn unfinished_tests_are_reported() {
        let slow = |test| format!("test {test} has been running for over 60 seconds\n");
        let stdout = format!("test a ... ok\n{}{}test b::c ... ok\n", slow("b::c"), slow("b::d"));
        assert_eq!(unfinished(&stdout).collect::<Vec<_>>(), ["b::d"]);
    }

    #[test]
    fn summary_lines_are_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!((count(line, "passed"), count(line, "failed"), count(line, "ignored")), (12, 3, 1));
        assert_eq!(count("test result: ok.", "passed"), 0);
    }
}
