//! The client in a pseudo-terminal that the test controls.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use vt100::Parser;

use crate::server::program;

/// Enough rows for everything that a test writes.
const ROWS: u16 = 150;
const COLUMNS: u16 = 120;
/// Long enough for any machine.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) struct Terminal {
    pty: Arc<Pty>,
    parser: Arc<Mutex<Parser>>,
    process: Child,
}

impl Terminal {
    pub(crate) fn start(port: u16, data: &Path, downloads: &Path) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(ROWS, COLUMNS)).unwrap();
        let client = Command::new(program("chat-client")).env("TERM", "xterm-256color");
        let client = client.arg(format!("localhost:{port}")).arg("--downloads").arg(downloads);
        let client = client.arg("--ca").arg(data.join("ca.pem"));
        let process = client.current_dir(data).spawn(pts).unwrap();
        let parser = Arc::new(Mutex::new(Parser::new(ROWS, COLUMNS, 0)));
        let pty = Arc::new(pty);
        let (reader, screen) = (pty.clone(), parser.clone());
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Fails when the program has ended.
            while let Ok(length @ 1..) = (&*reader).read(&mut bytes) {
                screen.lock().unwrap().process(&bytes[..length]);
            }
        });
        Self { pty, parser, process }
    }

    pub(crate) fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn line(&self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    pub(crate) fn screen(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    /// Waits until the screen satisfies `is_so`.
    pub(crate) fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let started = Instant::now();
        while !is_so(&self.screen()) {
            assert!(started.elapsed() < PATIENCE, "no {what} on this screen:\n{}", self.screen());
            thread::sleep(POLL_INTERVAL);
        }
    }

    pub(crate) fn wait_for(&self, text: &str) {
        self.wait(text, |screen| screen.contains(text));
    }

    /// Fills in name and password and presses a key.
    pub(crate) fn enter(&self, name: &str, password: &str, key: &str) {
        self.wait_for("Password");
        self.press(&format!("{name}\t{password}{key}"));
    }

    /// Returns the number, author and text of the visible messages, without unsent ones.
    pub(crate) fn messages(&self) -> Vec<(u64, String, String)> {
        let screen = self.screen();
        screen.lines().filter_map(message).collect()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The test may have ended it already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Parses `rooms |  NUMBER HH:MM AUTHOR: TEXT |here`.
fn message(line: &str) -> Option<(u64, String, String)> {
    let (_, line) = line.split_once('\u{2502}')?;
    let (line, _) = line.rsplit_once('\u{2502}')?;
    let (number, line) = line.trim().split_once(' ')?;
    let (_time, line) = line.split_once(' ')?;
    let (author, text) = line.split_once(": ")?;
    Some((number.parse().ok()?, author.to_owned(), text.to_owned()))
}
