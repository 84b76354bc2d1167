//! Tests `thalweg compare` with files, servers and git revisions.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{Running, outcome, thalweg};

const PROGRAM: &str = env!("CARGO_BIN_EXE_thalweg");
/// One call at a time, so that the handler's work exceeds any noise.
const LOAD: [&str; 5] = ["--", "--call", "grpc.testing.BenchmarkService/UnaryCall", "-c", "1"];
/// Short windows suffice for large differences. `--force` uses them even if the machine is busy.
const SHORT: [&str; 7] = ["--rounds", "4", "--window", "250ms", "--warmup", "50ms", "--force"];

fn compare(arguments: &[&str]) -> (Option<i32>, String, String) {
    outcome(thalweg(&[&["compare"], arguments].concat()).output().unwrap())
}

/// Repeats a comparison that other programs disturbed, up to twice, unless its exit code is as expected.
fn compare_undisturbed(arguments: &[&str], expected_code: i32) -> (Option<i32>, String, String) {
    let mut compared = compare(arguments);
    for _ in 0..2 {
        let (code, report, _) = &compared;
        if *code == Some(expected_code) || !report.contains("windows are not valid") {
            break;
        }
        compared = compare(arguments);
    }
    compared
}

fn serve(flags: &str) -> String {
    format!("{PROGRAM} serve --listen 127.0.0.1:{{port}} --threads 1 {flags}")
}

fn figure<'a>(report: &'a Value, name: &str) -> &'a Value {
    let figures = report["comparisons"][0]["cells"][0]["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["figure"] == name).unwrap_or_else(|| panic!("no {name}: {report}"))
}

#[test]
fn slower_server_is_worse_and_its_windows_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("comparison.json").display().to_string();
    // A call takes about 0.2 ms; B adds 3 ms.
    let (a, b) = (serve(""), serve("--work 3ms"));
    let arguments = [&["--a", &a, "--b", &b, "--save", &path, "-O", "json"], &SHORT[..], &LOAD].concat();
    let (code, stdout, stderr) = compare(&arguments);
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    assert!(stderr.contains("B is worse than A: rate is"), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let rate = figure(&report, "rate");
    assert_eq!((&rate["verdict"], &rate["rounds"]), (&"worse".into(), &serde_json::json!([4, 4])));
    for cpu in ["client-cpu", "server-cpu"] {
        assert!(figure(&report, cpu)["b"].as_f64() > Some(0.0), "{report}");
    }
    assert!(figure(&report, "server-cpu")["ratio"].as_f64() > Some(2.0), "{report}");
    // The saved windows give the same report.
    let (code, again, _) = compare(&[&path, "-O", "json", "--force"]);
    assert_eq!((code, again.as_str()), (Some(3), stdout.as_str()));
    let (code, markdown, _) = compare(&[&path, "-O", "markdown", "--fail-on", "none", "--names", "old,new"]);
    assert_eq!(code, Some(0), "{markdown}");
    assert!(markdown.contains("| | old | new | new ÷ old | 95 % | verdict |"), "{markdown}");
    let comparison: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(comparison["schema"], "thalweg.comparison/1");
    let sides: Vec<&str> = comparison["windows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|window| window["side"].as_str().unwrap())
        .collect();
    assert_eq!(sides, ["a", "b", "b", "a", "a", "b", "b", "a"]);
}

#[test]
fn same_server_is_not_worse() {
    let server = serve("");
    // Parallel tests do not affect CPU time.
    let gate = ["--fail-on", "server-cpu", "--margin", "100%"];
    let arguments = [&["--a", &server, "--b", &server], &gate[..], &SHORT, &["--", "-c", "1"]].concat();
    let (code, stdout, stderr) = compare(&arguments);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("BenchmarkService/UnaryCall, unary, closed loop, 1 in flight"), "{stdout}");
}

/// Judged by the median, which a busy machine hardly changes. The rate is scheduled and leaves two thirds of the time
/// idle.
#[test]
fn servers_are_compared_at_fixed_rate_over_tls_and_unix_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let certs = path("certs");
    assert!(thalweg(&["certs", "--out", &certs]).status().unwrap().success());
    let [chain, key, authority] =
        ["server.pem", "server.key", "ca.pem"].map(|name| format!("{certs}/{name}"));
    let at_socket =
        |name: &str, flags: &str| format!("{PROGRAM} serve --listen unix:{} --threads 1 {flags}", path(name));
    let with_tls = |flags: &str| serve(&format!("--cert {chain} --key {key} {flags}"));
    let sockets = ["a.sock", "b.sock"].map(|name| format!("unix:{}", path(name)));
    let rate = ["--", "--call", "grpc.testing.BenchmarkService/UnaryCall", "--rps", "40", "-c", "4"];
    let check = |sides: &[&str], load: &[&str]| {
        let arguments = [sides, &["-O", "json", "--fail-on", "p50"], &SHORT, &rate, load].concat();
        let (code, stdout, stderr) = compare_undisturbed(&arguments, 3);
        assert_eq!(code, Some(3), "{stdout}{stderr}");
        assert!(stderr.contains("B is worse than A: p50 is "), "{stderr}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        let cell = &report["comparisons"][0]["cells"][0];
        assert_eq!(
            (&cell["loop"], &cell["conditions"]["schedule"]),
            (&"open".into(), &"40".into()),
            "{cell}"
        );
        assert_eq!(figure(&report, "rate")["verdict"], "same", "{report}");
        assert_eq!(figure(&report, "p50")["verdict"], "worse", "{report}");
    };
    let (a, b) = (at_socket("a.sock", ""), at_socket("b.sock", "--work 8ms"));
    check(&["--a", &a, "--b", &b, "--a-target", &sockets[0], "--b-target", &sockets[1]], &[]);
    let (a, b) = (with_tls(""), with_tls("--work 8ms"));
    let target = ["--target", "https://localhost:{port}"];
    check(&[&["--a", &a, "--b", &b][..], &target].concat(), &["--cacert", &authority]);
}

/// Compares a run with changed copies of it.
#[test]
fn saved_results_are_compared_if_from_one_machine() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let call = "grpc.testing.TestService/EmptyCall";
    let (a, b) = (path("a.json"), path("b.json"));
    let run = ["load", &addresses[0], "--call", call, "-n", "300", "-c", "1", "-O", "json", "-o", &a];
    assert!(thalweg(&run).status().unwrap().success());
    let mut original: Value = serde_json::from_str(&fs::read_to_string(&a).unwrap()).unwrap();
    // This machine may be busy.
    original["not_valid"] = serde_json::json!([]);
    fs::write(&a, original.to_string()).unwrap();
    assert!(original["machine"]["cores"].as_u64() > Some(0), "{}", original["machine"]);
    let check = |change: &dyn Fn(&mut Value), flags: &[&str], expected_code: i32, expected: &str| {
        let mut other = original.clone();
        change(&mut other);
        fs::write(&b, other.to_string()).unwrap();
        let (code, stdout, stderr) = compare(&[&[a.as_str(), &b], flags].concat());
        assert_eq!(code, Some(expected_code), "{stdout}{stderr}");
        assert!(stdout.contains(expected) || stderr.contains(expected), "{expected}: {stdout}{stderr}");
    };
    check(&|_| (), &[], 0, "b against a: can't tell");
    check(&|_| (), &["--inconclusive", "pass"], 0, "b against a: can't tell");
    let unsure = "error: can't tell if b is worse than a by rate, p50, p99";
    check(&|_| (), &["--inconclusive", "fail"], 3, unsure);
    check(&|_| (), &["--inconclusive", "fail", "--fail-on", "none"], 0, "no figure can fail B");
    check(&|_| (), &["-O", "csv"], 0, "a,b,load,figure,value_a,value_b");
    check(&|_| (), &["-O", "html"], 0, "<code>thalweg compare ");
    let other_machine = |run: &mut Value| run["machine"]["cpu"] = "Abacus".into();
    // A figure that the files do not have is an error.
    check(
        &|_| (),
        &["--fail-on", "server-cpu"],
        2,
        "failed to compare server-cpu of b with a: not measured on both sides",
    );
    check(&other_machine, &[], 2, "they differ in the machine's processor");
    check(&other_machine, &["--force"], 0, "! compared although they differ in the machine's processor");
    check(
        &|run| run["method"] = "a.B/C".into(),
        &[],
        2,
        "they differ in method (grpc.testing.TestService/EmptyCall",
    );
    check(&|run| run["in_flight"] = 2.into(), &[], 2, "they differ in in flight (1 and 2)");
    check(&|run| run["machine"] = Value::Null, &[], 0, "! the machine of b is not recorded");
    // Several runs per side; those of B are ten times as slow.
    let sides = ["a", "b"].map(|side| folder.path().join(side));
    for (side, factor) in sides.iter().zip([1.0, 10.0]) {
        fs::create_dir(side).unwrap();
        for number in 0..3 {
            let mut run = original.clone();
            let rate = original["rate_per_s"].as_f64().unwrap() / factor * (1.0 + 0.01 * f64::from(number));
            run["rate_per_s"] = rate.into();
            fs::write(side.join(format!("{number}.json")), run.to_string()).unwrap();
        }
    }
    let [old, new] = sides.map(|side| side.display().to_string());
    let (code, stdout, stderr) = compare(&[&old, &new]);
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    assert!(stderr.contains("b is worse than a: rate is 0.10 × ("), "{stderr}");
    let lists = [
        format!("{old}/0.json,{old}/1.json,{old}/2.json"),
        format!("{new}/0.json,{new}/1.json,{new}/2.json"),
    ];
    let (code, listed, _) = compare(&[&lists[0], &lists[1], "--names", "a,b"]);
    assert_eq!((code, listed), (Some(3), stdout));
    let (code, stdout, _) = compare(&[&old, &old, &new, "--names", "x,y,z"]);
    assert_eq!(code, Some(3));
    assert!(stdout.contains("y against x: the same") && stdout.contains("z against x: worse"), "{stdout}");
}

#[test]
fn invalid_comparisons_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = folder.path().join("nothing.json").display().to_string();
    fs::write(&nothing, "{}").unwrap();
    let check = |arguments: &[&str], expected_code: i32, expected: &str| {
        let (code, stdout, stderr) = compare(arguments);
        assert_eq!((code, stdout.as_str()), (Some(expected_code), ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    };
    check(&[], 2, "expected two results");
    check(&[&nothing, &nothing], 1, "nothing.json: not a load result: missing `schema`");
    check(&["/no/such.json", &nothing], 1, "/no/such.json: failed to read the file");
    check(&[&nothing, "--", "--call", "a.B/C"], 2, "-- needs servers; use --a and --b");
    for (flag, value) in
        [("--rounds", "3"), ("--window", "1s"), ("--warmup", "0s"), ("--start-timeout", "1s")]
    {
        let expected = format!("{flag} needs servers; use --a and --b");
        check(&[&nothing, &nothing, flag, value], 2, &expected);
    }
    check(&["--a", "serve {port}"], 2, "--b");
    check(&["--a", "serve", "--b", "serve"], 2, "unknown address of `serve`");
    for flag in ["--target", "--a-target", "--b-target"] {
        check(&["--a", "s", "--b", "s", flag, "localhost"], 2, "`localhost` has no port");
    }
    // Invalid targets fail before any wait.
    let malformed = ["--a", "s", "--b", "s", "--a-target", "ipv4:hello", "--b-target", "127.0.0.1:1"];
    check(&malformed, 1, "invalid address `hello`");
    check(&["--a", "s", "--b", "s", "--target", "127.0.0.1:1"], 2, "cannot both listen on 127.0.0.1:1");
    check(&["--a", "s {port}", "--b", "s {port}", "--", "-z", "1s"], 2, "-z cannot follow --: use --window");
    check(&["--a", "s {port}", "--b", "s {port}", "--", "--expect=p99<1s"], 2, "--expect cannot follow --");
    for (flag, expected) in [
        ("--also=127.0.0.1:1", "--also cannot follow --: each side is one server"),
        ("-x5s", "-x cannot follow --: windows are limited by time"),
        ("--max-duration", "--max-duration cannot follow --: windows are limited by time"),
    ] {
        check(&["--a", "s {port}", "--b", "s {port}", "--", flag, "5s"], 2, expected);
    }
    check(&["--margin", "5"], 2, "invalid percentage `5`");
    check(&["--fail-on", "speed"], 2, "unknown figure `speed`");
    // A server that exits, one that never listens, and an invalid load.
    let ends = ["--a", "echo no such flag; exit 7; # {port}", "--b", "s {port}"];
    check(&ends, 1, "does not listen at 127.0.0.1:");
    check(&ends, 1, "exit status: 7: no such flag");
    let silent = ["--a", "echo waiting; sleep 100; # {port}", "--b", "s {port}", "--start-timeout", "100ms"];
    check(&silent, 1, "not within 0.1 s. waiting");
    let server = serve("");
    let no_load = [&["--a", &server, "--b", &server], &["--", "--call", "a.B/C"][..]].concat();
    check(&no_load, 1, "the load on A failed: ");
}

#[test]
fn dying_server_ends_comparison_with_its_stderr() {
    let dies = format!("{} & sleep 1; kill $!; wait $!; echo it is over; exit 4", serve(""));
    let server = serve("");
    let arguments = [
        "--a", &dies, "--b", &server, "--rounds", "50", "--window", "200ms", "--warmup", "0s", "--", "-c",
        "1",
    ];
    let (code, stdout, stderr) = compare(&arguments);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    let expected = "the server of A exited during the measurement: exit status: 4";
    assert!(stderr.contains(expected) && stderr.contains("it is over"), "{stderr}");
}

/// Returns the processes whose command line contains `text`.
fn running(text: &str) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|number: &i32| {
            fs::read_to_string(format!("/proc/{number}/cmdline")).is_ok_and(|line| line.contains(text))
        })
        .collect()
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"];
    let output = Command::new("git").arg("-C").arg(folder).args(identity).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Creates a repository with a fast and a slow revision of a server.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "--quiet"]);
    for (tag, flags) in [("fast", ""), ("slow", "--work 3ms")] {
        let script = format!("exec {PROGRAM} serve --listen 127.0.0.1:$1 --threads 1 {flags}\n");
        fs::write(folder.path().join("source.sh"), script).unwrap();
        git(folder.path(), &["add", "."]);
        git(folder.path(), &["commit", "--quiet", "--message", tag]);
        git(folder.path(), &["tag", tag]);
    }
    folder
}

#[test]
fn revisions_are_built_compared_and_cleaned_up() {
    let repository = repository();
    let compare = |arguments: &[&str]| {
        let mut command = thalweg(&[&["compare"], arguments].concat());
        outcome(command.current_dir(repository.path()).output().unwrap())
    };
    let run = ["--build", "cp source.sh built.sh", "--run", "sh built.sh {port}"];
    let revisions = ["--a-git", "fast", "--b-git", "slow", "-O", "json"];
    let (code, stdout, stderr) = compare(&[&revisions, &run[..], &SHORT, &LOAD].concat());
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["comparisons"][0]["a"], "fast");
    assert!(stderr.contains("slow is worse than fast: rate is"), "{stderr}");
    let (code, _, stderr) = compare(&["--a-git", "fast", "--b-git", "nothing", "--run", "s {port}"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("has no revision `nothing`"), "{stderr}");
    let broken =
        ["--a-git", "fast", "--b-git", "slow", "--build", "echo no compiler; exit 9", "--run", "s {port}"];
    let (code, _, stderr) = compare(&broken);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("failed for fast: exit status: 9: no compiler"), "{stderr}");
    assert_eq!(git(repository.path(), &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn interrupt_stops_servers_and_removes_worktrees() {
    let repository = repository();
    // Marks the processes of this test.
    let mark = repository.path().file_name().unwrap().to_str().unwrap();
    let command = format!("sh source.sh {{port}} & wait; # {mark}");
    let arguments = ["compare", "--a-git", "fast", "--b-git", "fast", "--run", &command, "--rounds", "1000"];
    let window = ["--window", "100ms", "--warmup", "0s", "--", "-c", "1"];
    let temporary = tempfile::tempdir().unwrap();
    let child = thalweg(&[&arguments[..], &window].concat())
        .current_dir(repository.path())
        .env("TMPDIR", temporary.path())
        .spawn()
        .unwrap();
    let began = Instant::now();
    // Two shells and the command itself.
    while running(mark).len() < 3 {
        assert!(began.elapsed() < Duration::from_secs(60), "the servers are not started");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let (code, stdout, stderr) = outcome(child.wait_with_output().unwrap());
    assert_eq!(code, Some(130), "{stdout}{stderr}");
    assert_eq!(running(mark), Vec::<i32>::new());
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "a work tree is left");
    assert_eq!(git(repository.path(), &["worktree", "list"]).lines().count(), 1);
}
