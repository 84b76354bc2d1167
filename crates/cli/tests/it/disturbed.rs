//! What happens to a study while it measures, with real processes: the report says so.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::Value;
use thalweg_measure::cpus::CpuList;

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

/// What a study calls: one call at a time, whose median is short beside whatever stops it; and a stream that keeps both
/// sides busy.
const LONE_CALLS: [&str; 4] = ["--calls", "unary", "-c", "1"];
const STREAM: [&str; 2] = ["--calls", "bidi-stream"];

/// A short study, ours beside the peer of this folder: exit code, stdout, stderr, results.
fn study(peers: &Path, calls: &[&str]) -> (Option<i32>, String, String, Value) {
    let out = peers.join("out");
    let mut args = vec!["lab", "sizes", "--against", "other", "--quick", "--sizes", "0", "--budget", "16s"];
    args.extend(["--peers", peers.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    args.extend(calls);
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
    let (code, stdout, stderr, results) = study(&peers, &LONE_CALLS);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stderr.contains("some points failed"), "{stderr}");
    let failed = |window: &&Value| window["failed"].as_str().is_some_and(|why| why.contains("server"));
    let points = results["points"].as_array().unwrap();
    assert!(points.iter().any(|window| failed(&window)), "{stdout}");
    assert!(points.iter().filter(failed).all(|window| window["pair"]["client"] == "other"), "{stdout}");
    assert!(stdout.contains("the server"), "{stdout}");
}

#[test]
fn a_server_that_is_stopped_for_a_second_is_seen() {
    let stopping =
        "(while sleep 0.6; do kill -STOP $$; sleep 1; kill -CONT $$ || exit; done) & $server \"$@\"";
    let (_, stdout, stderr, _) = study(&peer("stopped", stopping), &LONE_CALLS);
    let text = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    // It may have been stopped for a part of a window, or for all of it; on a busy machine other programs come first.
    let reasons = ["stall: ", "no operation finished in the measured time", "other programs were running"];
    let is_seen = reasons.map(|it| text.contains(it));
    assert!(is_seen.contains(&true), "{stdout}{stderr}");
}

/// A program that takes a processor for itself.
struct Neighbour(Child);

impl Neighbour {
    fn on(cpu: usize) -> Self {
        let mut command = Command::new("taskset");
        Self(command.args(["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"]).spawn().unwrap())
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
    // Servers are kept on the last processors. The others are left to the other tests.
    let _neighbour = Neighbour::on(*CpuList::available().unwrap().as_slice().last().unwrap());
    let (_, stdout, stderr, results) = study(&peer("neighbour", "$server \"$@\""), &STREAM);
    assert!(results["settings"]["server_cpus"].is_string(), "client and server need a core each");
    let text = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("waited for a CPU for"), "{stdout}{stderr}");
    assert!(text.contains("other programs were running"), "{stdout}{stderr}");
}
