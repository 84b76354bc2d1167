//! Measures points with processes of this very program: one `serve` for the study, one `load` for each point.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cpus::CpuList;
use crate::execute::{Execute, ExecuteError};
use crate::interrupt::Interrupt;
use crate::limit;
use crate::plan::{Point, Transport, Work};
use crate::record::{CallType, LoadResult};

/// How long the server may take until it listens, and to end when asked.
const SERVER_PATIENCE: Duration = Duration::from_secs(10);
/// How long a driver may take beyond its plan before it is ended.
const DRIVER_PATIENCE: Duration = Duration::from_secs(20);
/// How often an interrupt is looked for.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);
/// Of what a process complains about, this many last lines are kept.
const COMPLAINT_LINES_MAX: usize = 8;

/// Runs `PROGRAM serve` once and `PROGRAM load` for each point, on processors apart where there are two or more.
#[derive(Debug)]
pub struct ProcessExecutor {
    program: PathBuf,
    server: Server,
    interrupt: Interrupt,
    client_cpus: Option<CpuList>,
    server_cpus: Option<CpuList>,
}

/// Why the study cannot begin.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the server `{program} serve`: {reason}")]
pub struct StartError {
    program: String,
    reason: String,
}

impl ProcessExecutor {
    /// Starts the server, on TCP and on a Unix domain socket, and waits until it listens on both.
    pub fn start(program: PathBuf, interrupt: Interrupt) -> Result<Self, StartError> {
        let start_error = |reason: String| StartError { program: program.display().to_string(), reason };
        let cpus = CpuList::available().map_err(|error| start_error(error.to_string()))?;
        let (client_cpus, server_cpus) = cpus.halves().unzip();
        let server = Server::start(&program, server_cpus.as_ref()).map_err(start_error)?;
        Ok(Self { program, server, interrupt, client_cpus, server_cpus })
    }

    /// Processors that clients are kept on; `None` where there is one only.
    pub fn client_cpus(&self) -> Option<&CpuList> {
        self.client_cpus.as_ref()
    }

    /// Processors that the server is kept on.
    pub fn server_cpus(&self) -> Option<&CpuList> {
        self.server_cpus.as_ref()
    }

    fn load(&mut self, point: &Point, call: CallType) -> Result<LoadResult, ExecuteError> {
        let mut command = Command::new(&self.program);
        command
            .arg("load")
            .arg(self.server.target(point.transport))
            .args(["--call", call.name(), "--size", &point.size_bytes.0.to_string()])
            .args(["-c", &point.in_flight.to_string(), "--connections", &point.connections.to_string()])
            .args([
                "--warmup",
                &humantime::format_duration(whole_micros(point.warmup)).to_string().replace(' ', ""),
            ])
            .args([
                "-z",
                &humantime::format_duration(whole_micros(point.duration)).to_string().replace(' ', ""),
            ])
            .args(["-O", "json"]);
        if let Some(cpus) = &self.client_cpus {
            command.args(["--cpus", &cpus.to_string()]);
        }
        let mut driver = Process::spawn(&mut command).map_err(|error| {
            ExecuteError::Study(format!("cannot start `{} load`: {error}", self.program.display()))
        })?;
        let printed = self.await_driver(&mut driver, point.total() + DRIVER_PATIENCE)?;
        // A run whose calls all failed exits with 1 and still says what it saw: its JSON counts, not its code.
        serde_json::from_str(&printed).map_err(|not_json| {
            ExecuteError::Point(match driver.complaint() {
                complaint if complaint.is_empty() => {
                    format!("the driver's answer cannot be read: {not_json}")
                }
                complaint => complaint,
            })
        })
    }

    /// Everything the driver prints, once it has ended by itself.
    fn await_driver(&mut self, driver: &mut Process, patience: Duration) -> Result<String, ExecuteError> {
        let (sender, printed) = mpsc::channel();
        let mut stdout = driver.child.stdout.take().expect("every process is spawned with its stdout piped");
        thread::spawn(move || {
            let mut text = String::new();
            let read = stdout.read_to_string(&mut text).map(|_| text);
            // Nobody listens any more when the point was given up.
            let _ = sender.send(read);
        });
        let deadline = Instant::now() + patience;
        loop {
            match printed.recv_timeout(INTERRUPT_INTERVAL) {
                Ok(Ok(text)) => {
                    driver.child.wait().map_err(|error| ExecuteError::Point(error.to_string()))?;
                    return Ok(text);
                }
                Ok(Err(error)) => return Err(ExecuteError::Point(format!("the driver's answer: {error}"))),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ExecuteError::Point("the driver's answer was lost".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.interrupt.is_asked() {
                return Err(ExecuteError::Interrupted);
            }
            if Instant::now() > deadline {
                let patience_s = patience.as_secs();
                return Err(ExecuteError::Point(format!("the driver did not end within {patience_s} s")));
            }
        }
    }
}

impl Execute for ProcessExecutor {
    fn run(&mut self, point: &Point) -> Result<LoadResult, ExecuteError> {
        if self.interrupt.is_asked() {
            return Err(ExecuteError::Interrupted);
        }
        match point.work {
            Work::Call(call) => {
                let measured = self.load(point, call);
                match self.server.ended() {
                    Some(why) if measured != Err(ExecuteError::Interrupted) => Err(ExecuteError::Study(why)),
                    _ => measured,
                }
            }
            Work::Socket(pattern) => {
                limit::measure(point, pattern, self.client_cpus.as_ref(), self.server_cpus.as_ref())
                    .map_err(|error| ExecuteError::Point(format!("the bare socket: {error}")))
            }
        }
    }
}

/// `thalweg serve`, and where it listens. Ended when dropped.
#[derive(Debug)]
struct Server {
    process: Process,
    tcp: String,
    uds: String,
    /// Removed after the server has ended.
    _scratch: Scratch,
}

impl Server {
    fn start(program: &Path, cpus: Option<&CpuList>) -> Result<Self, String> {
        let scratch = Scratch::create().map_err(|error| format!("no place for its socket: {error}"))?;
        let uds = format!("unix:{}", scratch.0.join("server.sock").display());
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--listen", &uds]);
        if let Some(cpus) = cpus {
            command.args(["--cpus", &cpus.to_string()]);
        }
        let mut process = Process::spawn(&mut command).map_err(|error| error.to_string())?;
        let lines = process.lines();
        let deadline = Instant::now() + SERVER_PATIENCE;
        let mut addresses = Vec::new();
        while addresses.len() < 2 {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => addresses.extend(address_in(&line)),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("it did not listen within {} s", SERVER_PATIENCE.as_secs()));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(process.complaint()),
            }
        }
        let tcp = addresses.into_iter().find(|address| !address.starts_with("unix"));
        let tcp = tcp.ok_or("it does not say its TCP address")?;
        Ok(Self { process, tcp, uds, _scratch: scratch })
    }

    fn target(&self, transport: Transport) -> &str {
        match transport {
            Transport::Tcp => &self.tcp,
            Transport::Uds => &self.uds,
        }
    }

    /// Why the server is no more, when it is no more.
    fn ended(&mut self) -> Option<String> {
        let status = self.process.child.try_wait().ok().flatten()?;
        Some(format!("the server ended ({status}): {}", self.process.complaint()))
    }
}

/// The address in a line such as `listening on 127.0.0.1:50051`.
fn address_in(line: &str) -> Option<String> {
    line.split_whitespace()
        .map(|word| {
            word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '[' && c != ']' && c != '/')
        })
        .find(|word| word.starts_with("unix:") || word.parse::<std::net::SocketAddr>().is_ok())
        .map(str::to_owned)
}

/// A child in a process group of its own, so that a Ctrl-C at the terminal reaches the lab alone and the lab decides.
/// Ended when dropped: asked first, killed when it does not listen.
#[derive(Debug)]
struct Process {
    child: Child,
    complaints: Receiver<String>,
}

impl Process {
    fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
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
    fn lines(&mut self) -> Receiver<String> {
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

    /// The last lines of what a process that has ended complained about.
    fn complaint(&self) -> String {
        self.complaints.recv_timeout(Duration::from_secs(1)).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).map(Pid::from_raw);
        if let (Ok(None), Ok(pid)) = (self.child.try_wait(), pid) {
            let _ = kill(pid, Signal::SIGTERM);
            let deadline = Instant::now() + SERVER_PATIENCE;
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
        }
        // Both fail on a child that has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory of our own for the server's socket, removed when dropped.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn create() -> io::Result<Self> {
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

/// Durations on a command line read better without their nanoseconds.
fn whole_micros(duration: Duration) -> Duration {
    Duration::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_says_where_it_listens() {
        let check =
            |line: &str, address: Option<&str>| assert_eq!(address_in(line).as_deref(), address, "{line}");
        check("listening on 127.0.0.1:41233", Some("127.0.0.1:41233"));
        check("listening on 127.0.0.1:41233 (TCP).", Some("127.0.0.1:41233"));
        check("listening on unix:/tmp/a b", Some("unix:/tmp/a"));
        check("ready: [::1]:80,", Some("[::1]:80"));
        check("thalweg 0.1.0", None);
    }

    #[test]
    fn a_server_that_ends_at_once_is_named_with_its_complaint() {
        // The shell has no script `serve` and says so on its stderr.
        let error = ProcessExecutor::start("/bin/sh".into(), Interrupt::default()).unwrap_err();
        assert!(error.to_string().contains("serve"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let error = ProcessExecutor::start("/nonexistent/thalweg".into(), Interrupt::default()).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/thalweg"), "{error}");
    }
}
