//! The command under test, and its server.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Returns the command with these arguments.
pub(crate) fn thalweg(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns a folder of peers with the codecs. Builds them unless `THALWEG_CODEC` names the program.
pub(crate) fn peers_with_codecs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let program = std::env::var_os("THALWEG_CODEC").map_or_else(build_codecs, PathBuf::from);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
        fs::create_dir_all(folder.join("codec")).unwrap();
        // Renamed atomically, because a parallel test process may start it.
        let link = folder.join(format!("peer-{}", std::process::id()));
        symlink(program, &link).unwrap();
        fs::rename(link, folder.join("codec/peer")).unwrap();
        folder
    })
}

fn build_codecs() -> PathBuf {
    // target/debug/thalweg, or target/PROFILE/thalweg.
    let built = Path::new(env!("CARGO_BIN_EXE_thalweg")).parent().unwrap();
    let profile = built.file_name().filter(|name| *name != "debug").unwrap_or("dev".as_ref());
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--package", "thalweg-codec", "--profile"]).arg(profile);
    let status = cargo.arg("--target-dir").arg(built.parent().unwrap()).status().unwrap();
    assert!(status.success(), "the codecs could not be built: {status}");
    built.join("thalweg-codec")
}

/// Returns whether a study has an answer. Otherwise other programs, such as parallel tests, disturbed it.
#[track_caller]
pub(crate) fn has_answer(code: Option<i32>, stderr: &str) -> bool {
    let is_disturbed = code == Some(1) && stderr.contains("too many windows are not valid");
    assert!(code == Some(0) || is_disturbed, "{code:?}: {stderr}");
    code == Some(0)
}

/// Runs `thalweg load ADDRESS WORDS…`.
pub(crate) fn load(address: &str, words: &[&str]) -> (Option<i32>, String, String) {
    outcome(thalweg(&[&["load", address], words].concat()).output().unwrap())
}

/// Returns the result of such a load, which must succeed.
pub(crate) fn load_json(address: &str, words: &[&str]) -> Value {
    let (code, stdout, stderr) = load(address, &[words, &["-O", "json"]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

/// Returns exit code, stdout and stderr.
pub(crate) fn outcome(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("the command prints UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A running command. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    /// Starts `thalweg` with these arguments.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::spawn(&mut thalweg(args))
    }

    /// Starts `thalweg` with a piped stdin.
    pub(crate) fn start_told(args: &[&str]) -> Self {
        Self::spawn(thalweg(args).stdin(Stdio::piped()))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    /// Writes a line to stdin and returns the line of the response.
    pub(crate) fn tell(&mut self, line: &str) -> String {
        writeln!(self.child.stdin.as_mut().expect("stdin is piped"), "{line}").unwrap();
        self.line()
    }

    /// Starts `thalweg serve` and waits until it listens. Returns its addresses.
    pub(crate) fn serve(listen: &[&str]) -> (Self, Vec<String>) {
        Self::serve_with(listen, &["--threads", "1"])
    }

    /// Starts `thalweg serve` with flags.
    pub(crate) fn serve_with(listen: &[&str], flags: &[&str]) -> (Self, Vec<String>) {
        let mut args = vec!["serve"];
        args.extend(flags);
        args.extend(listen.iter().flat_map(|address| ["--listen", *address]));
        let mut server = Self::start(&args);
        let addresses = listen.iter().map(|_| {
            let line = server.line();
            line.strip_prefix("listening on ").unwrap_or_else(|| panic!("it says {line:?}")).to_owned()
        });
        let addresses = addresses.collect();
        (server, addresses)
    }

    /// Reads the next line of stdout.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits until the command has used much more CPU time than its start takes.
    pub(crate) fn until_at_work(&self) {
        const AT_WORK: Duration = Duration::from_millis(200);
        const PATIENCE: Duration = Duration::from_secs(60);
        let began = Instant::now();
        // The first number is the CPU time in ns.
        let schedstat = format!("/proc/{}/schedstat", self.child.id());
        let used = || {
            let text = fs::read_to_string(&schedstat).unwrap();
            Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
        };
        while used() < AT_WORK {
            assert!(began.elapsed() < PATIENCE, "the command does nothing");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits for the end. Returns exit code, rest of stdout, and stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let mut stdout = String::new();
        std::io::Read::read_to_string(&mut self.stdout, &mut stdout).unwrap();
        let mut stderr = String::new();
        let mut pipe: ChildStderr = self.child.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut pipe, &mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stdout, stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if the command has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
