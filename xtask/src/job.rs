//! Running programs: every run has a time limit and a log, and ends when this process ends.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::failure::Result;
use crate::{log, workspace};

/// A program to run, with its arguments, environment and time limit.
#[derive(Clone)]
pub(crate) struct Job {
    words: Vec<OsString>,
    environment: Vec<(String, OsString)>,
    directory: PathBuf,
    input: Option<PathBuf>,
    limit: Duration,
    is_build: bool,
}

/// Long enough for anything except building and installing.
const LIMIT_DEFAULT: Duration = Duration::from_secs(120);

impl Job {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            words: vec![program.as_ref().to_owned()],
            environment: Vec::new(),
            directory: workspace::root().to_owned(),
            input: None,
            limit: LIMIT_DEFAULT,
            is_build: false,
        }
    }

    /// The cargo that runs this program.
    pub(crate) fn cargo(words: &str) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Self::new(cargo).words(words)
    }

    pub(crate) fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words.push(word.as_ref().to_owned());
        self
    }

    /// Adds the words of `words`, separated by spaces; no word may contain a space.
    pub(crate) fn words(self, words: &str) -> Self {
        self.args(words.split_whitespace())
    }

    /// Adds these words verbatim.
    pub(crate) fn args(mut self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.words.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Runs the program under `wrapper`, for example `taskset -c 0`.
    pub(crate) fn under(mut self, wrapper: &str) -> Self {
        self.words.splice(0..0, wrapper.split_whitespace().map(OsString::from));
        self
    }

    /// Runs the program as the last words of `outer`.
    pub(crate) fn within(mut self, outer: Self) -> Self {
        self.words.splice(0..0, outer.words);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    pub(crate) fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Sets the file for standard input. Empty by default.
    pub(crate) fn stdin(mut self, path: impl Into<PathBuf>) -> Self {
        self.input = Some(path.into());
        self
    }

    pub(crate) fn minutes(self, minutes: u64) -> Self {
        self.seconds(60 * minutes)
    }

    pub(crate) fn seconds(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Marks the job as compiling or installing, which is timed separately, and sets its time limit.
    pub(crate) fn builds(mut self, minutes: u64) -> Self {
        self.is_build = true;
        self.minutes(minutes)
    }

    /// Runs to completion; a failure is an error that names the program.
    pub(crate) fn run(&self) -> Result<()> {
        self.check(self.status()?)
    }

    /// Runs to completion and returns the exit status, successful or not.
    pub(crate) fn status(&self) -> Result<ExitStatus> {
        Ok(self.end(log::file()?, log::file()?)?.status)
    }

    /// Runs to completion and returns the output, which is also logged.
    pub(crate) fn output(&self) -> Result<CapturedOutput> {
        CapturedOutput::capture(&self.end(Stdio::piped(), Stdio::piped())?)
    }

    /// Like [`output`](Self::output), but keeps standard input open and writes `reply` to it as soon as `cue` was
    /// printed.
    pub(crate) fn output_with_reply(&self, cue: &[u8], reply: &[u8]) -> Result<CapturedOutput> {
        let mut command = self.bounded()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (mut input, mut output) = pipes.expect("both are piped");
        let (mut seen, mut replies) = (Vec::new(), Some(reply));
        let mut buffer = [0; 4096];
        loop {
            let read = output.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            seen.extend_from_slice(&buffer[..read]);
            if seen.windows(cue.len()).any(|bytes| bytes == cue)
                && let Some(reply) = replies.take()
            {
                input.write_all(reply)?;
            }
        }
        CapturedOutput::capture(&Output { stdout: seen, ..child.wait_with_output()? })
    }

    /// Runs to completion and returns standard output; a failure is an error that names the program.
    pub(crate) fn text(&self) -> Result<String> {
        let captured = self.output()?;
        self.check(captured.status)?;
        Ok(captured.out)
    }

    /// Like [`text`](Self::text), for machine-readable output: it is not logged.
    pub(crate) fn quiet_text(&self) -> Result<String> {
        let output = self.end(Stdio::piped(), log::file()?)?;
        self.check(output.status)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Like [`quiet_text`](Self::quiet_text), for a program that prints JSON.
    pub(crate) fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.quiet_text()?).map_err(|why| failed!("`{self}` printed no JSON: {why}"))
    }

    /// Runs to completion and writes standard output to a file; a failure is an error that names the program.
    pub(crate) fn run_into(&self, path: &Path) -> Result<()> {
        self.check(self.end(File::create(path)?, log::file()?)?.status)
    }

    /// Returns the command without a time limit, for servers; it still ends when this process ends.
    pub(crate) fn unbounded(&self) -> Command {
        self.command(&[])
    }

    /// The program and its words, quoted for a shell.
    pub(crate) fn shell(&self) -> String {
        let quoted = |word: &OsString| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"));
        self.words.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }

    fn end(&self, stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> Result<Output> {
        let mut command = self.bounded()?;
        let start = Instant::now();
        let output = command.stdout(stdout).stderr(stderr).output();
        if self.is_build {
            BUILDS_MILLIS.fetch_add(start.elapsed().as_millis() as u64, Ordering::Relaxed);
        }
        output.map_err(|error| failed!("failed to start `{self}`: {error}"))
    }

    fn bounded(&self) -> Result<Command> {
        log::line(format_args!("$ {self}"))?;
        // `timeout` gives the program its own process group and kills the whole group, including children of a build.
        let mut command = self.command(&["timeout", "--kill-after=10", &self.limit.as_secs().to_string()]);
        if let Some(path) = &self.input {
            command.stdin(File::open(path)?);
        }
        Ok(command)
    }

    fn command(&self, wrapper: &[&str]) -> Command {
        // The kernel sends the signal however this process ends: no child outlives it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).args(wrapper).args(&self.words);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.directory).stdin(Stdio::null());
        command
    }

    fn check(&self, status: ExitStatus) -> Result<()> {
        match status.code() {
            Some(0) => Ok(()),
            Some(TIMED_OUT) => Err(failed!("`{self}` did not exit within {} s", self.limit.as_secs())),
            _ => Err(failed!("`{self}` failed: {status}")),
        }
    }
}

/// Output and exit status of a program.
pub(crate) struct CapturedOutput {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl CapturedOutput {
    fn capture(output: &Output) -> Result<Self> {
        let mut file = log::file()?;
        file.write_all(&output.stdout)?;
        file.write_all(&output.stderr)?;
        let [out, err] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        Ok(Self { status: output.status, out, err })
    }

    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    /// Number of lines of standard output with this prefix.
    pub(crate) fn count(&self, start: &str) -> usize {
        self.out.lines().filter(|line| line.starts_with(start)).count()
    }

    /// The first of `parts` that is in neither output.
    pub(crate) fn first_missing<'p>(&self, parts: impl IntoIterator<Item = &'p str>) -> Option<&'p str> {
        parts.into_iter().find(|part| !self.out.contains(part) && !self.err.contains(part))
    }
}

static BUILDS_MILLIS: AtomicU64 = AtomicU64::new(0);

/// Time this process waited for compiling and installing.
pub(crate) fn time_in_builds() -> Duration {
    Duration::from_millis(BUILDS_MILLIS.load(Ordering::Relaxed))
}

/// Exit code of `timeout` (GNU coreutils) when the limit ran out.
pub(crate) const TIMED_OUT: i32 = 124;

impl fmt::Display for Job {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        formatter.write_str(&words.join(" "))
    }
}

/// Finds the program on the PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

pub(crate) fn is_installed(program: &str) -> bool {
    find(program).is_some()
}

#[cfg(test)]
mod tests {
    use super::Job;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let job = Job::new("printf").args(["%s|", "a b", "it's", "$HOME", "{port}"]);
        let captured = std::process::Command::new("sh").arg("-c").arg(job.shell()).output().expect("sh runs");
        assert_eq!(String::from_utf8_lossy(&captured.stdout), "a b|it's|$HOME|{port}|");
    }
}
