//! The pair as a newcomer runs it: two processes, on a free port.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

/// A running `helloworld-server`, killed when the test ends.
struct RunningServer {
    child: Child,
    address: String,
}

impl RunningServer {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_helloworld-server"))
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("stderr is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the server says where it listens");
        let address = line.trim_end().strip_prefix("listening on ").expect("the line says so").to_owned();
        RunningServer { child, address }
    }

    fn client(&self, name: &str) -> Output {
        let client = env!("CARGO_BIN_EXE_helloworld-client");
        Command::new(client).args([&*self.address, name]).output().expect("the client starts")
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn named_caller_is_greeted() {
    let server = RunningServer::start();
    for name in ["world", "größte Maß"] {
        let output = server.client(name);
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("Hello {name}!\n"));
        assert!(output.status.success());
    }
}

#[test]
fn empty_name_is_an_error_shown_by_the_client() {
    let output = RunningServer::start().client("");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("say your name"), "{printed}");
    assert_eq!(output.status.code(), Some(1));
}
