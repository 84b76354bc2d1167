//! A server in a process of its own.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) struct Server {
    process: Child,
    pub(crate) port: u16,
}

impl Server {
    /// Once it listens; port 0 is any. Clients may connect when this returns.
    pub(crate) fn start(data: &Path, port: u16) -> Self {
        let mut process = Command::new(program("chat-server"))
            .arg("--listen")
            .arg(format!("127.0.0.1:{port}"))
            .arg("--data")
            .arg(data)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port = lines.find_map(|line| line.strip_prefix("listening on 127.0.0.1:")?.parse().ok());
        Self { process, port: port.expect("the server says where it listens") }
    }

    /// As by SIGKILL: it gets no chance to do anything more.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An example of this crate, which `cargo test` builds with its tests.
pub(crate) fn program(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is not there: cargo build -p thalweg-chat --examples", path.display());
    path
}
