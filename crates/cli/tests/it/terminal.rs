//! Runs the command in a terminal, with keys and screen for the test.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use vt100::Parser;

/// Long enough for any machine.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) struct Terminal {
    pty: Arc<Pty>,
    parser: Arc<Mutex<Parser>>,
    reader: Option<JoinHandle<()>>,
    process: Child,
}

impl Terminal {
    /// Starts the command with these arguments. stdout goes to a file if given, otherwise to the terminal.
    pub(crate) fn start(rows: u16, columns: u16, arguments: &[&str], stdout: Option<File>) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_thalweg")).args(arguments);
        Self::of(
            rows,
            columns,
            match stdout {
                Some(file) => command.stdout(file),
                None => command,
            },
        )
    }

    /// Starts any program.
    pub(crate) fn of(rows: u16, columns: u16, command: Command) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(rows, columns)).unwrap();
        let command = command.env("TERM", "xterm-256color").env_remove("CI").env_remove("NO_COLOR");
        let process = command.spawn(pts).unwrap();
        let parser = Arc::new(Mutex::new(Parser::new(rows, columns, 0)));
        let pty = Arc::new(pty);
        let (output, screen) = (pty.clone(), parser.clone());
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            // An error means that the program has ended.
            while let Ok(length @ 1..) = (&*output).read(&mut bytes) {
                screen.lock().unwrap().process(&bytes[..length]);
            }
        });
        Self { pty, parser, reader: Some(reader), process }
    }

    pub(crate) fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        self.parser.lock().unwrap().screen_mut().set_size(rows, columns);
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().try_into().unwrap()), signal).unwrap();
    }

    pub(crate) fn screen(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    /// Returns whether the alternate screen is on.
    pub(crate) fn is_alternate(&self) -> bool {
        self.parser.lock().unwrap().screen().alternate_screen()
    }

    pub(crate) fn hides_the_cursor(&self) -> bool {
        self.parser.lock().unwrap().screen().hide_cursor()
    }

    /// Waits until the screen meets a condition.
    pub(crate) fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.screen()) {
            assert!(begun.elapsed() < PATIENCE, "no {what} on this screen:\n{}", self.screen());
            thread::sleep(POLL_INTERVAL);
        }
    }

    pub(crate) fn wait_for(&self, text: &str) {
        self.wait(text, |screen| screen.contains(text));
    }

    /// Waits for the end and returns the exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let status = self.process.wait().unwrap();
        self.reader.take().map(JoinHandle::join).unwrap().unwrap();
        status.code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Fails if the command has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
