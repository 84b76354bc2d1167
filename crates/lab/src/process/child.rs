//! Processes that end with the lab.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::cpus::CpuList;

/// How long a process may take to end when asked.
const END_PATIENCE: Duration = Duration::from_secs(10);
/// How long those may take that outlive who has started them. Where nobody waits for them they are there for ever.
const ORPHANS_PATIENCE: Duration = Duration::from_secs(3);
/// Of what a process complains about, this many last lines are kept.
const COMPLAINT_LINES_MAX: usize = 8;

/// A child in a process group of its own, so that a Ctrl-C at the terminal reaches the lab alone and the lab decides.
/// Ended when dropped, with the group: asked first, killed when it does not listen.
#[derive(Debug)]
pub struct Process {
    pub(crate) child: Child,
    complaints: Receiver<String>,
}

impl Process {
    /// Starts the command on these processors.
    pub fn spawn(command: &mut Command, cpus: Option<&CpuList>) -> io::Result<Self> {
        Self::start(command.stdin(Stdio::null()), cpus)
    }

    /// The same, and what it is told comes through the child's stdin.
    pub(crate) fn spawn_told(command: &mut Command, cpus: Option<&CpuList>) -> io::Result<Self> {
        Self::start(command.stdin(Stdio::piped()), cpus)
    }

    fn start(command: &mut Command, cpus: Option<&CpuList>) -> io::Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = spawned_on(command, cpus)?;
        let stderr = child.stderr.take().expect("it is piped");
        let (sender, complaints) = mpsc::channel();
        thread::spawn(move || {
            let mut last = VecDeque::with_capacity(COMPLAINT_LINES_MAX + 1);
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                last.push_back(line);
                if last.len() > COMPLAINT_LINES_MAX {
                    last.pop_front();
                }
            }
            // Nobody asks when all went well.
            let _ = sender.send(Vec::from(last).join("\n"));
        });
        Ok(Self { child, complaints })
    }

    /// What the process prints, line by line, until it ends.
    pub fn lines(&mut self) -> Receiver<String> {
        let stdout = self.child.stdout.take().expect("every process is spawned with its stdout piped");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Reading goes on when nobody listens: a full pipe would stop the process.
                let _ = sender.send(line);
            }
        });
        lines
    }

    /// The number of the process, and of its group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended. Its number stays its own until it is dropped or [ended](Self::end).
    pub fn has_ended(&self) -> bool {
        !matches!(self.state(), Some(WaitStatus::StillAlive))
    }

    /// Asks it and all that it has started to end.
    pub fn ask_to_end(&self) {
        if let Some(group) = self.pid().filter(|_| !self.has_ended()) {
            // It may have ended this moment.
            let _ = killpg(group, Signal::SIGTERM);
        }
    }

    /// Ends it, and what it has started: asks first, and kills who does not listen. How it ended.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + END_PATIENCE;
        let until = |deadline: Instant, is_done: &dyn Fn() -> bool| {
            while !is_done() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
            is_done()
        };
        // Once it has been waited for, its number may be another's, and so may its group's.
        let group = self.pid().filter(|_| self.state().is_some());
        self.ask_to_end();
        if let Some(group) = group.filter(|_| !until(deadline, &|| self.has_ended())) {
            // It may have ended this moment.
            let _ = killpg(group, Signal::SIGKILL);
        }
        let status = self.child.wait();
        // The group's number stays its own as long as there is somebody in it.
        let deadline = deadline.min(Instant::now() + ORPHANS_PATIENCE);
        if let Some(group) = group.filter(|group| !until(deadline, &|| killpg(*group, None).is_err())) {
            let _ = killpg(group, Signal::SIGKILL);
        }
        status
    }

    /// `None` where it has been waited for already: it is no child any more.
    fn state(&self) -> Option<WaitStatus> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()?), flags).ok()
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().map(Pid::from_raw)
    }

    /// The last lines of what a process that has ended complained about. They are told once.
    pub(super) fn complaint(&self) -> String {
        self.complaints.recv_timeout(Duration::from_secs(1)).unwrap_or_default()
    }

    /// The same, and something to say where there was no complaint.
    pub fn last_words(&self) -> String {
        match self.complaint() {
            complaint if complaint.is_empty() => "it ended without a word on stderr".to_owned(),
            complaint => complaint,
        }
    }
}

/// A child inherits its processors from the thread that starts it, so that thread is a pinned one: nothing is asked of
/// the program itself.
fn spawned_on(command: &mut Command, cpus: Option<&CpuList>) -> io::Result<Child> {
    let Some(cpus) = cpus else { return command.spawn() };
    thread::scope(|scope| {
        let pinned = scope.spawn(|| cpus.pin_this_thread().and_then(|()| command.spawn()));
        pinned.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts a process panicked")))
    })
}

impl Drop for Process {
    fn drop(&mut self) {
        // It fails on a child that is gone, which is what is wanted.
        let _ = self.end();
    }
}

/// A directory of our own for sockets and the like, removed when dropped.
#[derive(Debug)]
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn create() -> io::Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("thalweg-lab-{}-{number}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left in a temporary directory harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> (Process, Receiver<String>) {
        let mut process = Process::spawn(Command::new("sh").args(["-c", script]), None).unwrap();
        let lines = process.lines();
        (process, lines)
    }

    fn is_there(process: &str) -> bool {
        // Who has ended and was not waited for is a zombie: its command line is empty.
        fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|line| !line.is_empty())
    }

    #[test]
    fn what_a_process_has_started_ends_with_it_when_it_has_put_its_things_away() {
        // The child of the shell takes its time; the shell itself does not wait for it.
        let script = "sh -c 'trap \"sleep 0.2; echo put away; exit\" TERM; echo $$; sleep 60 & wait' & wait";
        let (mut process, lines) = shell(script);
        let child = lines.recv().unwrap();
        assert!(!process.has_ended() && is_there(&child));
        let status = process.end().unwrap();
        assert!(!status.success() && process.has_ended());
        assert_eq!(lines.recv().as_deref(), Ok("put away"));
        assert!(!is_there(&child));
    }

    #[test]
    fn how_a_process_ended_is_known_however_often_one_asks() {
        let (mut process, _) = shell("echo no such flag >&2; exit 7");
        while !process.has_ended() {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(process.end().unwrap().code(), Some(7));
        assert_eq!(process.last_words(), "no such flag");
        assert_eq!(process.end().unwrap().code(), Some(7));
    }
}
