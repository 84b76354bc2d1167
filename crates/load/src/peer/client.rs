//! Runs a client as a process, and handles its announcements.

use std::io::{self, BufRead, BufReader};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_measure::cpus::CpuList;
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::process::Process;

use super::patience::Announcement;

/// Interval at which an interrupt is checked for.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

/// Receives a client's announcements, on the thread that reads its output: passing them to another thread would shift
/// the measured time.
pub trait Watch: Send + 'static {
    /// Called with each announcement.
    fn announced(&mut self, announcement: Announcement);
}

/// A client that has exited on its own.
#[derive(Debug)]
pub struct Conducted<W> {
    /// Output besides its announcements.
    pub text: String,
    /// The receiver of the announcements.
    pub watch: W,
    /// The exited process.
    pub process: Process,
}

/// Reason why a client did not complete.
#[derive(Debug, thiserror::Error)]
pub enum ConductError {
    /// The program cannot be started.
    #[error("failed to start `{program}`: {error}")]
    Start {
        /// The program.
        program: String,
        /// Reason.
        error: io::Error,
    },
    /// Its output or exit status cannot be read.
    #[error("failed to read the output of `{program}`: {error}")]
    Read {
        /// The program.
        program: String,
        /// Reason.
        error: io::Error,
    },
    /// It exceeded the time limit and was killed.
    #[error("the client did not exit within {} s", .0.as_secs())]
    Late(Duration),
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

/// Runs the client until it exits, at most for `patience`. `watch` creates the receiver of its announcements from its
/// PID.
///
/// # Errors
///
/// Returns an error if it does not start, does not end in time, or the user interrupts it. Its exit code is ignored: a
/// run with failed calls exits with 1 and still prints its result.
pub fn conduct<W: Watch>(
    command: &mut Command,
    cpus: Option<&CpuList>,
    patience: Duration,
    interrupt: &Interrupt,
    watch: impl FnOnce(u32) -> W,
) -> Result<Conducted<W>, ConductError> {
    let program = command.get_program().display().to_string();
    let mut process = match Process::spawn(command, cpus) {
        Ok(process) => process,
        Err(error) => return Err(ConductError::Start { program, error }),
    };
    let stdout = process.child.stdout.take().unwrap_or_else(|| unreachable!("it is spawned with a pipe"));
    let mut watch = watch(process.id());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let read = || {
            let mut text = String::new();
            for line in BufReader::new(stdout).lines() {
                let line = line?;
                match Announcement::of(&line) {
                    Some(announcement) => watch.announced(announcement),
                    None => text.extend([line.as_str(), "\n"]),
                }
            }
            Ok((text, watch))
        };
        // There is no receiver if the client was given up.
        let _ = sender.send(read());
    });
    let deadline = Instant::now() + patience;
    let read = loop {
        match receiver.recv_timeout(INTERRUPT_INTERVAL) {
            Ok(read) => break read,
            Err(RecvTimeoutError::Disconnected) => break Err(io::ErrorKind::BrokenPipe.into()),
            Err(RecvTimeoutError::Timeout) if interrupt.is_requested() => {
                return Err(ConductError::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                return Err(ConductError::Late(patience));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    };
    let ended = read.and_then(|read| process.child.wait().map(|_| read));
    match ended {
        Ok((text, watch)) => Ok(Conducted { text, watch, process }),
        Err(error) => Err(ConductError::Read { program, error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Announced(Vec<Announcement>);

    impl Watch for Announced {
        fn announced(&mut self, announcement: Announcement) {
            self.0.push(announcement);
        }
    }

    fn conducted(script: &str, patience: Duration) -> Result<Conducted<Announced>, ConductError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        conduct(&mut command, None, patience, &Interrupt::default(), |_| Announced::default())
    }

    #[test]
    fn announcements_are_separated_from_result() {
        let script = "echo measuring; echo '{'; echo measured; echo '}'; exit 1";
        let client = conducted(script, Duration::from_secs(60)).unwrap();
        assert_eq!(client.watch.0, [Announcement::Measuring, Announcement::Measured]);
        assert_eq!(client.text, "{\n}\n");
    }

    #[test]
    fn client_that_exceeds_patience_is_killed() {
        let error = conducted("exec sleep 1000", Duration::from_millis(20)).unwrap_err();
        assert!(matches!(error, ConductError::Late(_)), "{error}");
        let mut nothing = Command::new("/nonexistent/client");
        let patience = Duration::from_secs(1);
        let error = conduct(&mut nothing, None, patience, &Interrupt::default(), |_| Announced::default());
        assert!(error.unwrap_err().to_string().starts_with("failed to start `/nonexistent/client`: "));
    }
}
