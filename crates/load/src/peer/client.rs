//! Runs a client as a process, and looks at it from outside when it says where it stands.

use std::io::{self, BufRead, BufReader};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_measure::cpus::CpuList;
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::process::Process;

use super::patience::Announcement;

/// How often an interrupt is looked for.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

/// Is told where a client stands, on the thread that reads its lines: each hand-over between threads would shift the
/// measured time.
pub trait Watch: Send + 'static {
    /// The client has said so.
    fn announced(&mut self, announcement: Announcement);
}

/// A client that has ended by itself.
#[derive(Debug)]
pub struct Conducted<W> {
    /// What it printed besides its announcements.
    pub text: String,
    /// Who was told of them.
    pub watch: W,
    /// Its process, which has ended.
    pub process: Process,
}

/// Why a client did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ConductError {
    /// There is no such program.
    #[error("cannot start `{program}`: {error}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// Its output or its end cannot be read.
    #[error("cannot read the output of `{program}`: {error}")]
    Read {
        /// The program.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// It took too long, and was ended.
    #[error("the client did not end within {} s", .0.as_secs())]
    Late(Duration),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Runs the client until it has ended by itself, within this time. `watch` makes of its PID who is told of its
/// announcements.
///
/// # Errors
///
/// Returns an error if it does not start, does not end in time, or the user asks to stop. Its exit code does not
/// matter: a run whose calls failed ends with 1 and still prints its result.
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
        // Nobody listens any more when the client was given up.
        let _ = sender.send(read());
    });
    let deadline = Instant::now() + patience;
    let read = loop {
        match receiver.recv_timeout(INTERRUPT_INTERVAL) {
            Ok(read) => break read,
            Err(RecvTimeoutError::Disconnected) => break Err(io::ErrorKind::BrokenPipe.into()),
            Err(RecvTimeoutError::Timeout) if interrupt.is_asked() => return Err(ConductError::Interrupted),
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
    struct Heard(Vec<Announcement>);

    impl Watch for Heard {
        fn announced(&mut self, announcement: Announcement) {
            self.0.push(announcement);
        }
    }

    fn conducted(script: &str, patience: Duration) -> Result<Conducted<Heard>, ConductError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        conduct(&mut command, None, patience, &Interrupt::default(), |_| Heard::default())
    }

    #[test]
    fn announcements_are_told_from_the_result() {
        let script = "echo measuring; echo '{'; echo measured; echo '}'; exit 1";
        let client = conducted(script, Duration::from_secs(60)).unwrap();
        assert_eq!(client.watch.0, [Announcement::Measuring, Announcement::Measured]);
        assert_eq!(client.text, "{\n}\n");
    }

    #[test]
    fn client_that_does_not_end_is_ended() {
        let error = conducted("exec sleep 1000", Duration::from_millis(20)).unwrap_err();
        assert!(matches!(error, ConductError::Late(_)), "{error}");
        let mut nothing = Command::new("/nonexistent/client");
        let patience = Duration::from_secs(1);
        let error = conduct(&mut nothing, None, patience, &Interrupt::default(), |_| Heard::default());
        assert!(error.unwrap_err().to_string().starts_with("cannot start `/nonexistent/client`: "));
    }
}
