//! Processes that end with the lab.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cpus::CpuList;

/// How long a process may take to end when asked.
const END_PATIENCE: Duration = Duration::from_secs(10);
/// Of what a process complains about, this many last lines are kept.
const COMPLAINT_LINES_MAX: usize = 8;

/// A child in a process group of its own, so that a Ctrl-C at the terminal reaches the lab alone and the lab decides.
/// Ended when dropped: asked first, killed when it does not listen.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) child: Child,
    complaints: Receiver<String>,
}

impl Process {
    /// Starts the command on these processors.
    pub(crate) fn spawn(command: &mut Command, cpus: Option<&CpuList>) -> io::Result<Self> {
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
    pub(crate) fn lines(&mut self) -> Receiver<String> {
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

    /// The last lines of what a process that has ended complained about. They are told once.
    pub(super) fn complaint(&self) -> String {
        self.complaints.recv_timeout(Duration::from_secs(1)).unwrap_or_default()
    }

    /// The same, and something to say where there was no complaint.
    pub(crate) fn last_words(&self) -> String {
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
        let pid = i32::try_from(self.child.id()).map(Pid::from_raw);
        if let (Ok(None), Ok(pid)) = (self.child.try_wait(), pid) {
            let _ = kill(pid, Signal::SIGTERM);
            let deadline = Instant::now() + END_PATIENCE;
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
        }
        // Both fail on a child that has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
