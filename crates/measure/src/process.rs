//! Child processes that are terminated when their handle is dropped.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::cpus::CpuList;

/// Time between SIGTERM and SIGKILL.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for the rest of the group to exit after the child. Zombies without a reaper never disappear.
const ORPHANS_TIMEOUT: Duration = Duration::from_secs(3);
/// Number of stderr lines kept, counted from the end.
const STDERR_TAIL_LINES_MAX: usize = 8;

/// A child in a separate process group, so that Ctrl-C at the terminal does not reach it.
///
/// Dropping it terminates the whole group: SIGTERM first, and SIGKILL after 10 s.
#[derive(Debug)]
pub struct Process {
    /// The child, for its PID, status, stdin and stdout.
    pub child: Child,
    stderr_tails: Receiver<String>,
}

impl Process {
    /// Starts the command, pinned to `cpus`, with empty stdin.
    ///
    /// The child blocks once its stdout pipe is full. Call [`lines`](Self::lines) if it writes to stdout.
    pub fn spawn(command: &mut Command, cpus: Option<&CpuList>) -> io::Result<Self> {
        Self::start(command.stdin(Stdio::null()), cpus)
    }

    /// Starts the command like [`spawn`](Self::spawn), but with stdin as a pipe that the caller can write to.
    pub fn spawn_with_stdin(command: &mut Command, cpus: Option<&CpuList>) -> io::Result<Self> {
        Self::start(command.stdin(Stdio::piped()), cpus)
    }

    fn start(command: &mut Command, cpus: Option<&CpuList>) -> io::Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = spawn_on(command, cpus)?;
        let stderr = child.stderr.take().expect("stderr is piped");
        let (sender, complaints) = mpsc::channel();
        thread::spawn(move || {
            let mut last = VecDeque::with_capacity(STDERR_TAIL_LINES_MAX + 1);
            for line in text_lines(stderr) {
                last.push_back(line);
                if last.len() > STDERR_TAIL_LINES_MAX {
                    last.pop_front();
                }
            }
            // The receiver may be gone if nothing failed.
            let _ = sender.send(Vec::from(last).join("\n"));
        });
        Ok(Self { child, stderr_tails: complaints })
    }

    /// Returns the lines of the process's stdout until it is closed. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Panics
    ///
    /// Panics if it is called twice, or if `child.stdout` has been taken.
    pub fn lines(&mut self) -> Receiver<String> {
        let stdout = self.child.stdout.take().expect("stdout is piped and not taken yet");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in text_lines(stdout) {
                // Keep reading even without a receiver, because a full pipe would block the process.
                let _ = sender.send(line);
            }
        });
        lines
    }

    /// Returns the PID, which is also the group's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the process has exited. It keeps its PID until it is dropped or [`end`](Self::end) is called.
    pub fn has_exited(&self) -> bool {
        !matches!(self.state(), Some(WaitStatus::StillAlive))
    }

    /// Sends SIGTERM to the process group, unless the process has exited.
    pub fn terminate(&self) {
        if let Some(group) = self.pid().filter(|_| !self.has_exited()) {
            // The process may have exited just now.
            let _ = killpg(group, Signal::SIGTERM);
        }
    }

    /// Terminates the process group and returns the exit status of the process.
    ///
    /// Sends SIGTERM, and SIGKILL if the process runs for 10 s longer. After it has exited, the rest of the group gets
    /// up to 3 s, within the same 10 s, before SIGKILL. If the process had been waited for already, this only returns
    /// its status.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + END_TIMEOUT;
        let until = |deadline: Instant, is_done: &dyn Fn() -> bool| {
            while !is_done() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
            is_done()
        };
        // After `wait`, other processes may have the PID and the group id.
        let group = self.pid().filter(|_| self.state().is_some());
        self.terminate();
        if let Some(group) = group.filter(|_| !until(deadline, &|| self.has_exited())) {
            // The process may have exited just now.
            let _ = killpg(group, Signal::SIGKILL);
        }
        let status = self.child.wait();
        // The group id is not reused while the group has members.
        let deadline = deadline.min(Instant::now() + ORPHANS_TIMEOUT);
        if let Some(group) = group.filter(|group| !until(deadline, &|| killpg(*group, None).is_err())) {
            let _ = killpg(group, Signal::SIGKILL);
        }
        status
    }

    /// Returns the state without reaping the process. `None` if it has been waited for already.
    fn state(&self) -> Option<WaitStatus> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()?), flags).ok()
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().map(Pid::from_raw)
    }

    /// Returns the last 8 lines of stderr of a process that has exited.
    ///
    /// Returns an empty text if called again, or if stderr is not closed within 1 s.
    pub fn stderr_tail(&self) -> String {
        self.stderr_tails.recv_timeout(Duration::from_secs(1)).unwrap_or_default()
    }

    /// Returns [`stderr_tail`](Self::stderr_tail), or a replacement text if it is empty.
    pub fn stderr_tail_or_default(&self) -> String {
        match self.stderr_tail() {
            complaint if complaint.is_empty() => "the process exited without writing to stderr".to_owned(),
            complaint => complaint,
        }
    }
}

/// Starts the command on these CPUs, from a thread that is pinned to them.
///
/// A child inherits the affinity of the thread that starts it, so the program itself needs no support for pinning.
fn spawn_on(command: &mut Command, cpus: Option<&CpuList>) -> io::Result<Child> {
    let Some(cpus) = cpus else { return command.spawn() };
    thread::scope(|scope| {
        let pinned = scope.spawn(|| cpus.pin_this_thread().and_then(|()| command.spawn()));
        pinned.join().unwrap_or_else(|_| Err(io::Error::other("the thread that spawns the process panicked")))
    })
}

/// Returns the lines of a pipe until it is closed. A line that is not UTF-8 must not end them, because the process
/// would then get SIGPIPE on its next write.
fn text_lines(pipe: impl Read) -> impl Iterator<Item = String> {
    let lines = BufReader::new(pipe).split(b'\n').map_while(Result::ok);
    lines.map(|line| String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned())
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that the child is already gone.
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn shell(script: &str) -> (Process, Receiver<String>) {
        let mut process = Process::spawn(Command::new("sh").args(["-c", script]), None).unwrap();
        let lines = process.lines();
        (process, lines)
    }

    #[test]
    fn line_that_is_not_utf8_does_not_end_lines() {
        let (mut process, lines) = shell("printf 'a\\377\\r\\nb\\n'; echo >&2 'c\\0377'; exit 3");
        assert_eq!(lines.iter().collect::<Vec<_>>(), ["a\u{fffd}", "b"]);
        assert_eq!(process.end().unwrap().code(), Some(3));
        assert!(process.stderr_tail().starts_with('c'));
    }

    fn is_there(process: &str) -> bool {
        // A zombie has an empty command line.
        fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|line| !line.is_empty())
    }

    #[test]
    fn end_lets_grandchildren_clean_up_before_it_returns() {
        // The inner shell exits late, and the outer one does not wait for it.
        let script = "sh -c 'trap \"sleep 0.2; echo put away; exit\" TERM; echo $$; sleep 60 & wait' & wait";
        let (mut process, lines) = shell(script);
        let child = lines.recv().unwrap();
        assert!(!process.has_exited() && is_there(&child));
        let status = process.end().unwrap();
        assert!(!status.success() && process.has_exited());
        assert_eq!(lines.recv().as_deref(), Ok("put away"));
        assert!(!is_there(&child));
    }

    #[test]
    fn end_returns_same_status_when_called_again() {
        let (mut process, _) = shell("echo no such flag >&2; exit 7");
        while !process.has_exited() {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(process.end().unwrap().code(), Some(7));
        assert_eq!(process.stderr_tail_or_default(), "no such flag");
        assert_eq!(process.end().unwrap().code(), Some(7));
    }
}
