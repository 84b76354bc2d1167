//! Tests completion scripts in zsh and fish: zsh in a terminal, which its completion requires, and fish by its
//! `complete` command. Scripts are installed as `thalweg completions --help` says.

use std::fs;
use std::path::Path;
use std::process::Command;

use pty_process::blocking::Command as TerminalCommand;
use tempfile::TempDir;

use crate::completions::script;
use crate::support::{Running, outcome};
use crate::terminal::Terminal;

const STREAMING: [&str; 2] =
    ["grpc.testing.TestService/StreamingInputCall", "grpc.testing.TestService/StreamingOutputCall"];

/// Returns the PATH, with the command's folder first.
fn path() -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_thalweg")).parent().unwrap().display();
    format!("{folder}:{}", std::env::var("PATH").unwrap())
}

fn is_needed(shell: &str) -> String {
    format!(
        "{shell} is needed to try its completions, and is not on the PATH. On Debian: `apt-get install {shell}`"
    )
}

/// A zsh with only our script.
struct Zsh {
    terminal: Terminal,
    _home: TempDir,
}

impl Zsh {
    const PROMPT: &str = "zsh> ";
    /// Clears line and screen.
    const CLEAR: &str = "\x15\x0c";

    fn start() -> Self {
        let found = Command::new("zsh").arg("--version").output();
        assert!(found.is_ok(), "{}", is_needed("zsh"));
        let home = tempfile::tempdir().unwrap();
        let functions = home.path().join(".zfunc");
        fs::create_dir(&functions).unwrap();
        fs::write(functions.join("_thalweg"), script("zsh")).unwrap();
        let settings = format!(
            "fpath+={}\nautoload -U compinit\ncompinit -D -u\nunsetopt beep prompt_sp\nPS1='{}'\n",
            functions.display(),
            Self::PROMPT
        );
        fs::write(home.path().join(".zshrc"), settings).unwrap();
        // Ignores the machine's settings.
        let command = TerminalCommand::new("zsh").args(["-d", "-i"]).env("PATH", path());
        let command = command.env("ZDOTDIR", home.path()).env("HOME", home.path()).env("LC_ALL", "C.UTF-8");
        let terminal = Terminal::of(60, 200, command);
        terminal.wait_for(Self::PROMPT.trim_end());
        Self { terminal, _home: home }
    }

    /// Asserts the line after Tab, with `#` at the cursor.
    fn completes(&self, typed: &str, expected: &str) {
        self.terminal.press(&format!("{typed}\t#"));
        let line = format!("{}{expected}", Self::PROMPT);
        self.terminal.wait(&line, |screen| screen.lines().any(|shown| shown.trim_end() == line));
        self.clear();
    }

    /// Asserts the candidates listed below an ambiguous line.
    fn lists(&self, typed: &str, expected: &[&str]) {
        self.terminal.press(&format!("{typed}\t"));
        self.terminal.wait(typed, |screen| {
            let names = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            screen.lines().skip(1).flat_map(names).eq(expected.iter().copied())
        });
        self.clear();
    }

    fn clear(&self) {
        self.terminal.press(Self::CLEAR);
        self.terminal.wait("empty line", |screen| screen.trim() == Self::PROMPT.trim_end());
    }
}

#[test]
#[ignore = "needs zsh"]
fn zsh_completes_services_and_methods_of_the_server() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let zsh = Zsh::start();
    let call = format!("thalweg call {}", addresses[0]);
    let load = format!("thalweg load {}", addresses[0]);
    let completes = |command: &str, typed: &str, expected: &str| {
        zsh.completes(&format!("{command} {typed}"), &format!("{command} {expected}"));
    };
    completes(&call, "grpc.testing.TestService/Una", "grpc.testing.TestService/UnaryCall #");
    completes(&call, "grpc.testing.TestService/St", "grpc.testing.TestService/Streaming#");
    zsh.lists(&format!("{call} grpc.testing.TestService/Streaming"), &STREAMING);
    completes(
        &call,
        "-m 'a: b' grpc.testing.TestService/Una",
        "-m 'a: b' grpc.testing.TestService/UnaryCall #",
    );
    completes(&call, "de", "describe #");
    completes(&call, "list grpc.testing.T", "list grpc.testing.TestService #");
    completes(&call, "describe grpc.testing.EchoS", "describe grpc.testing.EchoStatus #");
    completes(&load, "--call grpc.testing.TestService/Una", "--call grpc.testing.TestService/UnaryCall #");
    completes(&load, "--call=grpc.testing.TestService/Una", "--call=grpc.testing.TestService/UnaryCall #");
    // Other words are completed by clap.
    completes(&call, "-O te", "-O text #");
    completes(&load, "--warm", "--warmup=#");
    zsh.completes("thalweg lo", "thalweg load #");
    completes(&load, "--prometheus 127.0.0.1:0 --warm", "--prometheus 127.0.0.1:0 --warmup=#");
    // Options after the first of several arguments are completed.
    completes(&call, "--emit-d", "--emit-defaults #");
    zsh.completes("thalweg compare a.json b.json --forc", "thalweg compare a.json b.json --force #");
}

#[test]
#[ignore = "needs zsh"]
fn zsh_completes_names_from_files_and_failures_are_silent() {
    let protos = concat!(env!("CARGO_MANIFEST_DIR"), "/../load/proto");
    let zsh = Zsh::start();
    let command = format!("thalweg call --proto {protos}/grpc/testing/test.proto -i {protos} list");
    zsh.completes(&format!("{command} grpc.testing.T"), &format!("{command} grpc.testing.TestService #"));
    // Nothing listens on port 1.
    zsh.completes("thalweg call 127.0.0.1:1 li", "thalweg call 127.0.0.1:1 list #");
    zsh.completes("thalweg call 127.0.0.1:1 grpc.t", "thalweg call 127.0.0.1:1 grpc.t#");
}

/// Returns fish's completions of a line, without descriptions.
fn fish(line: &str) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    let completions = home.path().join(".config/fish/completions");
    fs::create_dir_all(&completions).unwrap();
    fs::write(completions.join("thalweg.fish"), script("fish")).unwrap();
    let mut fish = Command::new("fish");
    fish.args(["-c", "complete -C $argv[1]", line]).env("PATH", path()).env("HOME", home.path());
    fish.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME").env("LC_ALL", "C.UTF-8");
    let output = fish.output().unwrap_or_else(|_| panic!("{}", is_needed("fish")));
    let (code, stdout, stderr) = outcome(output);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{line}");
    stdout.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "needs fish"]
fn fish_completes_services_and_methods_of_the_server() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let call = |typed: &str| fish(&format!("thalweg call {} {typed}", addresses[0]));
    let load = |typed: &str| fish(&format!("thalweg load {} {typed}", addresses[0]));
    let all = call("");
    for name in ["list", "describe", "grpc.health.v1.Health/Check", "grpc.testing.TestService/UnaryCall"] {
        assert!(all.iter().any(|proposed| proposed == name), "{name}: {all:?}");
    }
    assert_eq!(call("grpc.testing.TestService/St"), STREAMING);
    assert_eq!(call("-m 'a: b' grpc.testing.TestService/St"), STREAMING);
    assert_eq!(call("de"), ["describe"]);
    assert_eq!(call("list grpc.testing.T"), ["grpc.testing.TestService"]);
    assert_eq!(call("describe grpc.testing.E"), ["grpc.testing.EchoStatus", "grpc.testing.Empty"]);
    assert_eq!(load("--call grpc.testing.TestService/St"), STREAMING);
    assert_eq!(load("--call=grpc.testing.TestService/St"), STREAMING.map(|name| format!("--call={name}")));
    // Other words are completed by clap.
    assert_eq!(call("-O te"), ["text"]);
    assert_eq!(load("--warm"), ["--warmup"]);
    assert_eq!(fish("thalweg lo"), ["load"]);
}

#[test]
#[ignore = "needs fish"]
fn fish_completes_names_from_files_and_failures_are_silent() {
    let protos = concat!(env!("CARGO_MANIFEST_DIR"), "/../load/proto");
    let command = format!("thalweg call --proto {protos}/grpc/testing/test.proto -i {protos} list");
    assert_eq!(fish(&format!("{command} grpc.testing.T")), ["grpc.testing.TestService"]);
    // Nothing listens on port 1.
    assert_eq!(fish("thalweg call 127.0.0.1:1 li"), ["list"]);
    assert_eq!(fish("thalweg load 127.0.0.1:1 --call grpc.t"), [""; 0]);
}
