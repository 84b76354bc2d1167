//! A server in a separate process.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) struct Server {
    process: Child,
    pub(crate) port: u16,
}

impl Server {
    /// Starts a server and returns when clients can connect. Port 0 picks a free port.
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

    /// Kills the process with SIGKILL, without a chance to clean up.
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

/// Path of an example of this crate, which `cargo test` builds with its tests.
pub(crate) fn program(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is not there: cargo build -p thalweg-chat --examples", path.display());
    path
}
