//! The client with piped input and output.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::server::{Server, program};

/// Runs a client with these input lines.
fn run(server: &Server, data: &Path, options: &[&str], password: Option<&str>, lines: &str) -> Output {
    let mut client = Command::new(program("chat-client"));
    client.arg(format!("localhost:{}", server.port)).arg("--ca").arg(data.join("ca.pem"));
    client.arg("--plain").args(options).env_remove("CHAT_PASSWORD").current_dir(data);
    if let Some(password) = password {
        client.env("CHAT_PASSWORD", password);
    }
    client.args(["--downloads", "downloads"]);
    let mut process =
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Fails if the client has ended already.
    let _ = process.stdin.take().unwrap().write_all(lines.as_bytes());
    process.wait_with_output().unwrap()
}

#[test]
fn plain_client_reads_and_prints_lines() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), 0);
    fs::write(data.path().join("a.txt"), "abc").unwrap();
    let check = |options: &[&str], password, lines: &str, well: bool, out: &[&str], error: &str| {
        let output = run(&server, data.path(), options, password, lines);
        let [printed, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert_eq!(output.status.success(), well, "{printed}\n{stderr}");
        // Without the times.
        let printed = printed.lines().map(|line| {
            let (at, rest) = line.split_at(line.find(':').unwrap() - 2);
            format!("{at}{}", &rest[6..])
        });
        assert_eq!(printed.collect::<Vec<_>>(), out, "{stderr}");
        assert!(stderr.contains(error), "{stderr}");
    };

    let lines = "correct horse\nhello\n/create den\nin the den\n/send a.txt\n/save 2\n";
    let printed = ["lobby 1 ada: hello", "den 1 ada: in the den", "den 2 ada: [file a.txt, 0.0 MB: /save 2]"];
    check(&["--name", "ada", "--register"], None, lines, true, &printed, "saved downloads/a.txt");
    assert_eq!(fs::read(data.path().join("downloads/a.txt")).unwrap(), b"abc");

    let right = Some("correct horse");
    check(&["--name", "ada"], right, "", true, &printed[..1], "");
    check(&["--name", "ada"], right, "/join den\n/who\n", true, &printed, "in den: ada");
    check(
        &["--name", "ada"],
        right,
        "/send missing\nbye\n",
        false,
        &["lobby 1 ada: hello", "lobby 2 ada: bye"],
        "failed to read missing",
    );
    check(
        &["--name", "ada"],
        Some("wrong horse"),
        "never\n",
        false,
        &[],
        "the name or the password is wrong",
    );
    // No terminal, and no `--plain`.
    let output = Command::new(program("chat-client")).stdin(Stdio::null()).output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("--plain is for pipes"));
}
