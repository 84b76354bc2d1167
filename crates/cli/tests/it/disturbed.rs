//! What happens to a study while it measures, with real processes: the report says so.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command};

use serde_json::Value;

use crate::support::{outcome, thalweg};

/// Our own stack as a peer of another name, whose server runs as `serve` says: `$server` starts it in the same process.
fn peer(name: &str, serve: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    fs::create_dir_all(folder.join("other")).unwrap();
    let ours = env!("CARGO_BIN_EXE_thalweg");
    let script = format!(
        "#!/bin/sh\n\
         server='exec {ours}'\n\
         case $1 in\n\
         version) echo 'other 1' ;;\n\
         variants) echo server; echo client ;;\n\
         settings) exec {ours} settings ;;\n\
         serve) {serve} ;;\n\
         *) exec {ours} \"$@\" ;;\n\
         esac\n"
    );
    let program = folder.join("other/peer");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// A study of lone and overlapping calls, ours beside the peer of this folder: exit code, stdout, stderr, results.
fn study(peers: &PathBuf, more: &[&str]) -> (Option<i32>, String, String, Value) {
    let out = peers.join("out");
    let mut args = vec!["lab", "sizes", "--against", "other", "--quick", "--calls", "unary", "--sizes", "0"];
    args.extend(["--budget", "16s", "--peers", peers.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    args.extend(more);
    let (code, stdout, stderr) = outcome(thalweg(&args).output().unwrap());
    let results = fs::read_to_string(out.join("results.json")).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    fs::remove_dir_all(peers).unwrap();
    assert!(page.contains("other 1"), "the page names the peer");
    (code, stdout, stderr, serde_json::from_str(&results).unwrap())
}

#[test]
fn a_server_that_is_killed_makes_its_windows_fail() {
    // It is started again once, and is killed again.
    let peers = peer("killed", "(sleep 3; kill -9 $$) & $server \"$@\"");
    let (code, stdout, stderr, results) = study(&peers, &[]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stderr.contains("some points failed"), "{stderr}");
    let failed = |window: &&Value| window["failed"].as_str().is_some_and(|why| why.contains("server"));
    let points = results["points"].as_array().unwrap();
    assert!(points.iter().any(|window| failed(&window)), "{stdout}");
    assert!(points.iter().filter(failed).all(|window| window["pair"]["client"] == "other"), "{stdout}");
    assert!(stdout.contains("the server ended"), "{stdout}");
}

#[test]
fn a_server_that_is_stopped_for_a_second_is_seen() {
    let stopping =
        "(while sleep 0.6; do kill -STOP $$; sleep 1; kill -CONT $$ || exit; done) & $server \"$@\"";
    let (_, stdout, stderr, _) = study(&peer("stopped", stopping), &[]);
    assert!(stdout.contains("something stopped"), "{stdout}{stderr}");
}

/// A program that takes a processor for itself.
struct Neighbour(Child);

impl Neighbour {
    fn on(cpu: &str) -> Self {
        let mut command = Command::new("taskset");
        Self(command.args(["-c", cpu, "sh", "-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_neighbour_that_takes_a_processor_is_named() {
    // One study finds out which processors the sides are kept on.
    let (_, stdout, _, results) = study(&peer("quiet", "$server \"$@\""), &[]);
    let Some(cpus) = results["settings"]["server_cpus"].as_str() else {
        panic!("client and server need a core each: {stdout}")
    };
    let _neighbour = Neighbour::on(cpus);
    let (_, stdout, stderr, _) = study(&peer("neighbour", "$server \"$@\""), &[]);
    assert!(stdout.contains("the server was kept from its processor"), "{stdout}{stderr}");
    assert!(stdout.contains("other programs ran on it"), "{stdout}{stderr}");
}
