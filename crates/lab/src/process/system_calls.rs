//! Counts system calls per operation with `strace`, in separate runs because counting slows the process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::driver::{Driver, INTERRUPT_INTERVAL};
use crate::load::{Point, SystemCalls};
use crate::study::ExecuteError;

/// Time limit for `strace` to attach or detach.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts of one run.
#[derive(Clone, Copy, Debug)]
struct RunCounts {
    client: u64,
    server: u64,
    operations: u64,
}

/// Counts in two runs of unequal length. Their difference excludes the equal cost of starting, connecting and
/// stopping.
pub(super) fn count(driver: &Driver) -> Result<SystemCalls, ExecuteError> {
    let shorter = Driver {
        point: Point { duration: Point::counted_first(driver.point.duration), ..driver.point.clone() },
        ..driver.clone()
    };
    let (short, long) = (count_run(&shorter)?, count_run(driver)?);
    per_operation(short, long).ok_or_else(|| {
        ExecuteError::Window("too few operations under strace to count system calls".to_owned())
    })
}

fn per_operation(short: RunCounts, long: RunCounts) -> Option<SystemCalls> {
    let operations = long.operations.checked_sub(short.operations).filter(|&more| more > 0)? as f64;
    let client = long.client.checked_sub(short.client)? as f64;
    let server = long.server.checked_sub(short.server)? as f64;
    Some(SystemCalls { client_per_operation: client / operations, server_per_operation: server / operations })
}

fn count_run(driver: &Driver) -> Result<RunCounts, ExecuteError> {
    let failed = |what: &str, error: &dyn std::fmt::Display| ExecuteError::Window(format!("{what}: {error}"));
    let scratch = tempfile::tempdir()
        .map_err(|error| failed("failed to create a folder for strace's counts", &error))?;
    let (client_file, server_file) = (scratch.path().join("client"), scratch.path().join("server"));
    let tracer = Tracer::attach(driver, &server_file)?;
    let client_path = client_file.display().to_string();
    let load = driver.run_under(&["strace", "-f", "-c", "-o", &client_path, "--"])?;
    tracer.detach()?;
    let read = |path: &Path| -> Result<u64, ExecuteError> {
        let table =
            fs::read_to_string(path).map_err(|error| failed("failed to read strace's counts", &error))?;
        Ok(calls_in(&table))
    };
    Ok(RunCounts { client: read(&client_file)?, server: read(&server_file)?, operations: load.messages })
}

/// Sums the column `calls` of strace's table:
///
/// ```text
/// % time     seconds  usecs/call     calls    errors syscall
/// ------ ----------- ----------- --------- --------- ----------------
///  61.29    0.000019           9         2         1 read
/// ------ ----------- ----------- --------- --------- ----------------
/// 100.00    0.000031                     3         1 total
/// ```
fn calls_in(table: &str) -> u64 {
    let calls = |line: &str| -> Option<u64> {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_sum = columns.last() == Some(&"total");
        columns.get(3).filter(|_| !is_sum)?.parse().ok()
    };
    table.lines().filter_map(calls).sum()
}

/// `strace` attached to a server.
struct Tracer(Child);

impl Tracer {
    /// Attaches and returns once the server is traced.
    fn attach(driver: &Driver, file: &Path) -> Result<Self, ExecuteError> {
        let server_pid = driver.server_pid.ok_or_else(|| {
            ExecuteError::Window("system calls of an external server cannot be counted".to_owned())
        })?;
        let child = Command::new("strace")
            .args(["-f", "-c", "-o"])
            .arg(file)
            .args(["-p", &server_pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut tracer = Self(child.map_err(|error| {
            ExecuteError::Window(format!("failed to start strace, which counts system calls: {error}"))
        })?);
        let stderr = tracer.0.stderr.take().expect("stderr is piped");
        await_attached(stderr, driver)?;
        Ok(tracer)
    }

    /// Detaches; the counts are then in the file.
    fn detach(mut self) -> Result<(), ExecuteError> {
        self.signal(Signal::SIGINT);
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.0.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                return Err(ExecuteError::Window("strace did not detach from the server".to_owned()));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        if let Ok(pid) = i32::try_from(self.0.id()) {
            // Fails only if the process has already exited.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            // When `strace` is killed, the kernel detaches it and the traced process continues.
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

/// Waits for `strace: Process 4711 attached with 3 threads`, then keeps reading so that a full pipe does not block it.
fn await_attached(stderr: ChildStderr, driver: &Driver) -> Result<(), ExecuteError> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let deadline = Instant::now() + PATIENCE;
    let mut complaint = "strace exited without an error text".to_owned();
    loop {
        match lines.recv_timeout(INTERRUPT_INTERVAL) {
            Ok(line) if line.contains(" attached") => return Ok(()),
            Ok(line) => complaint = line,
            Err(RecvTimeoutError::Disconnected) => return Err(ExecuteError::Window(complaint)),
            Err(RecvTimeoutError::Timeout) if driver.interrupt.is_requested() => {
                return Err(ExecuteError::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                return Err(ExecuteError::Window("strace did not attach to the server".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strace_call_column_is_summed() {
        let table = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 61.29    0.000019           9         2         1 read
 38.71    0.000012           0       123           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.000031           0       125         1 total
";
        assert_eq!(calls_in(table), 125);
        // Older versions leave a gap in the total.
        let older = "100.00    0.000031                   125         1 total\n";
        assert_eq!(calls_in(older), 0);
        assert_eq!(calls_in(""), 0);
    }

    #[test]
    fn constant_cost_of_both_runs_cancels_out() {
        let short = RunCounts { client: 500 + 200, server: 50 + 100, operations: 100 };
        let long = RunCounts { client: 500 + 2000, server: 50 + 1000, operations: 1000 };
        let per = per_operation(short, long).unwrap();
        assert_eq!((per.client_per_operation, per.server_per_operation), (2.0, 1.0));
        assert_eq!(per_operation(long, short), None);
        assert_eq!(per_operation(short, short), None);
    }
}
