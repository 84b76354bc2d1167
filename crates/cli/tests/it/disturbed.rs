//! Tests that studies with real processes report disturbances.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::Value;
use thalweg_measure::cpus::CpuList;

use crate::support::{Running, load_json, outcome, thalweg};

/// Creates a peer named `other` that runs our own stack. `serve` is the shell command of its server, where `$server`
/// starts the server by `exec`.
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

/// Lone calls have a short median relative to any stop. A stream keeps both sides busy.
const LONE_CALLS: [&str; 4] = ["--calls", "unary", "-c", "1"];
const STREAM: [&str; 2] = ["--calls", "bidi-stream"];

/// Runs a short study of our stack and this peer. Returns exit code, stdout, stderr and results.
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
fn windows_of_killed_server_fail() {
    // The server is restarted once and killed again.
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
fn stopped_server_invalidates_window() {
    let stopping =
        "(while sleep 0.6; do kill -STOP $$; sleep 1; kill -CONT $$ || exit; done) & $server \"$@\"";
    let (_, stdout, stderr, _) = study(&peer("stopped", stopping), &LONE_CALLS);
    let text = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    // A stop may cover a window partly or wholly. On a busy machine other programs may be reported first.
    let reasons = ["stall: ", "no operation finished in the measured time", "other programs were running"];
    let is_seen = reasons.map(|it| text.contains(it));
    assert!(is_seen.contains(&true), "{stdout}{stderr}");
}

/// A program that keeps one CPU busy.
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
fn busy_neighbour_process_is_named() {
    // Servers run on the last CPUs. The others are left to parallel tests.
    let _neighbour = Neighbour::on(*CpuList::available().unwrap().as_slice().last().unwrap());
    let (_, stdout, stderr, results) = study(&peer("neighbour", "$server \"$@\""), &STREAM);
    assert!(results["settings"]["server_cpus"].is_string(), "client and server need a core each");
    let text = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("waited for a CPU for"), "{stdout}{stderr}");
    assert!(text.contains("other programs were running"), "{stdout}{stderr}");
}

/// Starts enough busy programs to leave little of the CPU to others.
fn crowd(cpu: usize) -> Vec<Neighbour> {
    (0..4).map(|_| Neighbour::on(cpu)).collect()
}

#[test]
fn study_without_valid_windows_fails() {
    let cpus = CpuList::available().unwrap();
    let _crowds: Vec<_> = cpus.as_slice().iter().map(|&cpu| crowd(cpu)).collect();
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("crowded-{}", std::process::id()));
    let calls = ["--calls", "unary", "--transports", "tcp", "--sizes", "0", "--budget", "20s"];
    let words = [&["lab", "--quick"][..], &calls, &["--out"]].concat();
    let (code, stdout, stderr) =
        outcome(thalweg(&[&words[..], &[out.to_str().unwrap()]].concat()).output().unwrap());
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
    let (page, csv) = (read("report.html"), read("results.csv"));
    let results: Value = serde_json::from_str(&read("results.json")).unwrap();
    let earlier = outcome(
        thalweg(&[
            "lab",
            "--from",
            out.join("results.json").to_str().unwrap(),
            "--out",
            out.to_str().unwrap(),
        ])
        .output()
        .unwrap(),
    );
    fs::remove_dir_all(&out).unwrap();

    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stderr.contains("the study is inconclusive: too many windows are not valid"), "{stderr}");
    let text = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("other program") && text.contains("or use a longer --budget."), "{stdout}");
    assert!(!text.contains("cannot tell"), "{stdout}");
    assert_eq!((earlier.0, &earlier.1), (Some(1), &stdout), "the saved results say the same");

    // Page, CSV and JSON agree.
    let (_, heading) = page.split_once("<h1>").unwrap();
    let (heading, _) = heading.split_once("</h1>").unwrap();
    assert!(heading.contains("valid") && heading.contains("--budget"), "{heading}");
    let points = results["points"].as_array().unwrap();
    let reasons = |window: &Value| window["not_valid"].as_array().unwrap().len();
    // Four busy programs per CPU disturb all calls except in rare short windows. Socket windows are short.
    let calls = points.iter().filter(|window| window["pair"].is_object());
    let (valid, invalid): (Vec<_>, Vec<_>) = calls.partition(|window| reasons(window) == 0);
    assert!(valid.len() * 4 <= invalid.len(), "{} valid calls\n{csv}", valid.len());
    let mut lines = csv.lines();
    let column = lines.next().unwrap().split(',').position(|name| name == "valid").unwrap();
    let told: Vec<bool> = lines.map(|line| line.split(',').nth(column) == Some("true")).collect();
    assert_eq!(told, points.iter().map(|window| reasons(window) == 0).collect::<Vec<_>>(), "{csv}");
}

const UNARY: &str = "grpc.testing.BenchmarkService/UnaryCall";

/// Returns the reasons why this run is not valid.
fn invalid(run: &Value) -> String {
    let reasons = run["not_valid"].as_array().unwrap().iter();
    reasons.map(|reason| reason["text"].as_str().unwrap()).collect::<Vec<_>>().join("; ")
}

#[test]
fn run_beside_busy_programs_is_not_valid() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let cpu = *CpuList::available().unwrap().as_slice().last().unwrap();
    let _crowd = crowd(cpu);
    let cpu = cpu.to_string();
    for calls in [&["--call", UNARY, "-c", "1"][..], &["--call", UNARY, "--rps", "2000"], &["-c", "1"]] {
        let run = load_json(&addresses[0], &[calls, &["-z", "2s", "--cpus", &cpu]].concat());
        let why = invalid(&run);
        assert!(why.contains("the client waited for a CPU for"), "{calls:?}: {run:#}");
        assert!(why.contains("other programs were running"), "{calls:?}: {why}");
    }
}

/// A cgroup limited to a fifth of a CPU. Requires permission to create it.
struct Quota(PathBuf);

impl Quota {
    fn new() -> Option<Self> {
        let name = format!("thalweg-test-{}", std::process::id());
        let mounts = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"];
        let group = mounts.iter().map(|mount| Path::new(mount).join(&name));
        let group = group.into_iter().find(|group| fs::create_dir(group).is_ok())?;
        let quota = Self(group);
        let is_set = fs::write(quota.0.join("cpu.max"), "20000 100000").is_ok()
            || fs::write(quota.0.join("cpu.cfs_quota_us"), "20000").is_ok();
        is_set.then_some(quota)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn run_under_cpu_quota_is_not_valid() {
    let Some(quota) = Quota::new() else {
        eprintln!("skipped: this user may not set a CPU quota");
        return;
    };
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let script = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", quota.0.display());
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_thalweg"), "load", &addresses[0]]);
    command.args(["--call", UNARY, "-c", "8", "-z", "2s", "-O", "json"]);
    let (code, stdout, stderr) = outcome(command.output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    let run: Value = serde_json::from_str(&stdout).unwrap();
    let why = invalid(&run);
    // On a busy machine other programs may be the limit instead.
    let reasons = ["a CPU quota (cgroup) limited it", "other programs were running"];
    assert!(reasons.iter().any(|reason| why.contains(reason)), "{run:#}");
}
