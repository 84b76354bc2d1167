//! Running programs: every run has a time limit, a log, and ends with us.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::workspace;

/// Why a step did not pass.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was tested is wrong, or a program failed.
    Failed(String),
    /// Something that the step needs cannot be had on this machine, so nothing was tested.
    Missing(String),
}

impl Failure {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::Missing(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) => formatter.write_str(message),
            Self::Missing(message) => write!(formatter, "cannot be had here: {message}"),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The file that takes all output of one step.
pub(crate) struct Log {
    path: PathBuf,
}

impl Log {
    /// Starts the log of the step `name` afresh.
    pub(crate) fn create(name: &str) -> Result<Self, Failure> {
        fs::create_dir_all(workspace::output())?;
        let path = workspace::output().join(format!("{name}.log"));
        File::create(&path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn line(&self, line: impl fmt::Display) -> Result<(), Failure> {
        writeln!(self.appending()?, "{line}")?;
        Ok(())
    }

    pub(crate) fn appending(&self) -> Result<File, Failure> {
        Ok(OpenOptions::new().append(true).open(&self.path)?)
    }
}

/// A program to run, with what it is given and how long it may take.
#[derive(Clone)]
pub(crate) struct Job {
    words: Vec<OsString>,
    environment: Vec<(String, OsString)>,
    directory: PathBuf,
    input: Option<PathBuf>,
    limit: Duration,
    is_build: bool,
}

/// Long enough for what does not build or install anything.
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

    /// Adds the words of `words`, which are separated by spaces and hold none.
    pub(crate) fn words(mut self, words: &str) -> Self {
        self.words.extend(words.split_whitespace().map(OsString::from));
        self
    }

    /// Adds these words as they are.
    pub(crate) fn all(mut self, words: &[String]) -> Self {
        self.words.extend(words.iter().map(OsString::from));
        self
    }

    /// Lets the words of `wrapper` run this program: `taskset -c 0`, say.
    pub(crate) fn under(mut self, wrapper: &str) -> Self {
        self.words.splice(0..0, wrapper.split_whitespace().map(OsString::from));
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

    /// Gives it this file as its standard input, which is empty otherwise.
    pub(crate) fn stdin(mut self, path: impl Into<PathBuf>) -> Self {
        self.input = Some(path.into());
        self
    }

    pub(crate) fn minutes(mut self, minutes: u64) -> Self {
        self.limit = Duration::from_secs(60 * minutes);
        self
    }

    pub(crate) fn seconds(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// It compiles or installs, and its time is counted as such.
    pub(crate) fn builds(mut self) -> Self {
        self.is_build = true;
        self
    }

    /// Runs to the end; a failure is an error that names the program.
    pub(crate) fn run(&self, log: &Log) -> Result<(), Failure> {
        let status = self.status(log)?;
        self.check(status)
    }

    /// Runs to the end and gives the exit status, whatever it is.
    pub(crate) fn status(&self, log: &Log) -> Result<ExitStatus, Failure> {
        log.line(format_args!("$ {self}"))?;
        let mut command = self.bounded()?;
        command.stdout(log.appending()?).stderr(log.appending()?);
        let start = Instant::now();
        let status = command.status();
        if self.is_build {
            BUILDS_MILLIS.fetch_add(start.elapsed().as_millis() as u64, Ordering::Relaxed);
        }
        status.map_err(|error| self.unstarted(&error))
    }

    /// Runs to the end and gives its standard output too; both outputs are in the log.
    pub(crate) fn output(&self, log: &Log) -> Result<Output, Failure> {
        log.line(format_args!("$ {self}"))?;
        let output =
            self.bounded()?.stderr(Stdio::piped()).output().map_err(|error| self.unstarted(&error))?;
        log_both(&output, log)?;
        Ok(output)
    }

    /// As [`output`](Self::output), with an open standard input: `reply` is written there as soon as `cue` has been put
    /// out.
    pub(crate) fn output_with_reply(&self, cue: &[u8], reply: &[u8], log: &Log) -> Result<Output, Failure> {
        log.line(format_args!("$ {self}"))?;
        let mut command = self.bounded()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| self.unstarted(&error))?;
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
        let rest = child.wait_with_output()?;
        let output = Output { stdout: seen, ..rest };
        log_both(&output, log)?;
        Ok(output)
    }

    /// Runs to the end and gives its standard output as text; a failure is an error that names the program.
    pub(crate) fn text(&self, log: &Log) -> Result<String, Failure> {
        let output = self.output(log)?;
        self.check(output.status)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// As [`text`](Self::text), for output that only a program reads: it stays out of the log.
    pub(crate) fn quiet_text(&self, log: &Log) -> Result<String, Failure> {
        log.line(format_args!("$ {self}"))?;
        let output =
            self.bounded()?.stderr(log.appending()?).output().map_err(|error| self.unstarted(&error))?;
        self.check(output.status)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs to the end and writes its standard output to a file of its own; a failure is an error that names the
    /// program.
    pub(crate) fn run_into(&self, path: &Path, log: &Log) -> Result<(), Failure> {
        log.line(format_args!("$ {self} > {}", path.display()))?;
        let mut command = self.bounded()?;
        command.stdout(fs::File::create(path)?).stderr(log.appending()?);
        let status = command.status().map_err(|error| self.unstarted(&error))?;
        self.check(status)
    }

    /// The command without a time limit, for a server: it still ends when we end.
    pub(crate) fn unbounded(&self) -> Command {
        self.command(&[])
    }

    /// The program and its words, as a shell takes them.
    pub(crate) fn shell(&self) -> String {
        let quoted = |word: &OsString| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"));
        self.words.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }

    fn bounded(&self) -> Result<Command, Failure> {
        // `timeout` gives the program a group of its own and ends all of the group: what a build starts ends with it.
        let seconds = self.limit.as_secs().to_string();
        let mut command = self.command(&["timeout", "--kill-after=10", &seconds]);
        if let Some(path) = &self.input {
            command.stdin(File::open(path)?);
        }
        Ok(command)
    }

    fn command(&self, wrapper: &[&str]) -> Command {
        // The kernel sends the signal when we end, however we end: nothing that we start outlives us.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).args(wrapper).args(&self.words);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.directory).stdin(Stdio::null());
        command
    }

    fn check(&self, status: ExitStatus) -> Result<(), Failure> {
        match status.code() {
            Some(0) => Ok(()),
            Some(TIMED_OUT) => {
                Err(Failure::failed(format!("`{self}` did not end within {} s", self.limit.as_secs())))
            }
            _ => Err(Failure::failed(format!("`{self}` failed: {status}"))),
        }
    }

    fn unstarted(&self, error: &std::io::Error) -> Failure {
        Failure::failed(format!("`{self}` could not be started: {error}"))
    }
}

fn log_both(output: &Output, log: &Log) -> Result<(), Failure> {
    let mut file = log.appending()?;
    file.write_all(&output.stdout)?;
    file.write_all(&output.stderr)?;
    Ok(())
}

/// How long this process waited for builds.
static BUILDS_MILLIS: AtomicU64 = AtomicU64::new(0);

/// How long this process waited for what compiles or installs.
pub(crate) fn time_in_builds() -> Duration {
    Duration::from_millis(BUILDS_MILLIS.load(Ordering::Relaxed))
}

/// What `timeout` (GNU coreutils) exits with when the limit ran out.
pub(crate) const TIMED_OUT: i32 = 124;

impl fmt::Display for Job {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, word) in self.words.iter().enumerate() {
            let space = if position == 0 { "" } else { " " };
            write!(formatter, "{space}{}", word.to_string_lossy())?;
        }
        Ok(())
    }
}

/// Where the program of this name is on the PATH.
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
    fn a_shell_takes_the_words_as_they_are() {
        let words = ["a b", "it's", "$HOME", "{port}"];
        let job = words.iter().fold(Job::new("printf").arg("%s|"), Job::arg);
        let said = std::process::Command::new("sh").arg("-c").arg(job.shell()).output().expect("sh runs");
        assert_eq!(String::from_utf8_lossy(&said.stdout), "a b|it's|$HOME|{port}|");
    }
}
