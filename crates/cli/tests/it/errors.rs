//! Tests error messages and exit codes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::support::{Running, outcome, thalweg};

const FAILED: i32 = 1;
const BAD_ARGUMENTS: i32 = 2;

/// Runs `thalweg` and asserts the exit code, an empty stdout, and all of `parts` on stderr.
fn check(args: &[&str], code: i32, parts: &[&str]) {
    let (found, stdout, stderr) = outcome(thalweg(args).output().unwrap());
    assert_eq!(found, Some(code), "thalweg {args:?}: {stderr}");
    assert_eq!(stdout, "", "thalweg {args:?}");
    for part in parts {
        assert!(stderr.contains(part), "thalweg {args:?}: {part:?} is not in {stderr:?}");
    }
    // Errors of clap have several lines, all others one.
    assert!(stderr.starts_with("error: ") || args.is_empty(), "thalweg {args:?}: {stderr:?}");
    if !stderr.contains("--help") {
        assert_eq!(stderr.lines().count(), 1, "thalweg {args:?}: {stderr:?} is not one line");
    }
}

#[test]
fn serve_rejects_unusable_addresses() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    check(&["serve", "--listen", &taken], FAILED, &[&taken, "in use"]);
    check(&["serve", "--listen", "127.0.0.1:0", "--listen", &taken], FAILED, &[&taken, "in use"]);
    check(
        &["serve", "--listen", "unix:/nonexistent/socket"],
        FAILED,
        &["unix:/nonexistent/socket", "No such file"],
    );
    check(&["serve", "--listen", "nonsense"], BAD_ARGUMENTS, &["`nonsense`", "HOST:PORT"]);
    check(&["serve", "--listen", "127.0.0.1:65536"], BAD_ARGUMENTS, &["127.0.0.1:65536", "port"]);
    check(&["serve", "--listen", "unix:"], BAD_ARGUMENTS, &["`unix:`"]);
}

#[test]
fn socket_in_use_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("unix:{}", directory.path().join("socket").display());
    let (_server, _) = Running::serve(&[&address]);
    check(&["serve", "--listen", &address], FAILED, &[&address, "in use"]);
}

/// Flags without effect are rejected, even if they state a default.
#[test]
fn flags_without_effect_are_rejected() {
    let nobody = "127.0.0.1:1";
    let method = ["load", nobody, "--call", "shop.Orders/Get"];
    let said = "--size sets the payload of grpc.testing.BenchmarkService; use --data for shop.Orders";
    check(&[&method[..], &["--size", "0"]].concat(), BAD_ARGUMENTS, &[said]);
    check(&["load", nobody, "--size", "1", "--data", "{}"], BAD_ARGUMENTS, &["cannot be used with"]);
    let arrivals = ["--arrivals", "poisson"];
    let said = "--arrivals needs --rps or --find-max";
    check(&[&method[..], &arrivals].concat(), BAD_ARGUMENTS, &[said]);
}

#[test]
fn invalid_arguments_are_rejected() {
    let nobody = "127.0.0.1:1";
    check(&[], BAD_ARGUMENTS, &["Usage", "serve", "load", "lab"]);
    check(&["frobnicate"], BAD_ARGUMENTS, &["frobnicate"]);
    check(&["completions"], BAD_ARGUMENTS, &["<SHELL>"]);
    check(&["completions", "tcsh"], BAD_ARGUMENTS, &["'tcsh'", "bash, elvish, fish, powershell, zsh"]);
    check(&["man"], BAD_ARGUMENTS, &["<DIRECTORY>"]);
    check(&["man", "/proc/thalweg"], FAILED, &["/proc/thalweg", "failed to write man pages"]);
    check(&["load"], BAD_ARGUMENTS, &["<TARGET>"]);
    check(
        &["peer", "load", nobody, "--echo", "people"],
        BAD_ARGUMENTS,
        &["'people'", "person, own", "log-record"],
    );
    check(&["lab", "published", "qtt"], BAD_ARGUMENTS, &["`qtt`", "qt, json, codec or channels"]);
    check(&["lab", "published", "--cores", "4096"], BAD_ARGUMENTS, &["--cores 4096", "available CPUs"]);
    check(&["lab", "published", "--from", "/nonexistent"], FAILED, &["/nonexistent/results.json"]);
    check(&["lab", "published", "--resume", "/nonexistent"], FAILED, &["/nonexistent/results.json"]);
    check(&["lab", "published", "--from", "x", "--quick"], BAD_ARGUMENTS, &["--from", "--quick"]);
    check(&["lab", "json", "--message", "own"], BAD_ARGUMENTS, &["--proto, --type and --data"]);
    check(&["lab", "json", "--proto", "shop.proto"], BAD_ARGUMENTS, &["--type", "--data"]);
    check(
        &["load", nobody, "-z", "1s", "-n", "5"],
        BAD_ARGUMENTS,
        &["--duration", "cannot be used with", "--total"],
    );
    check(&["load", nobody, "-z", "10"], BAD_ARGUMENTS, &["--duration", "10ms"]);
    check(&["load", nobody, "--lanes", "some"], BAD_ARGUMENTS, &["`some`", "per-call"]);
    check(&["peer", "load", nobody, "--hex", "00"], BAD_ARGUMENTS, &["--method"]);
    check(&["peer", "load", nobody, "--method", "x", "--call", "ping-pong"], BAD_ARGUMENTS, &["unary"]);
    check(&["load", nobody, "-n", "0"], BAD_ARGUMENTS, &["--total"]);
    check(&["load", nobody, "--size", "5X"], BAD_ARGUMENTS, &["`5X`", "64KiB"]);
    check(&["load", nobody, "--size", "1GiB"], BAD_ARGUMENTS, &["64 MiB"]);
    check(
        &["load", nobody, "--call", "smoke"],
        BAD_ARGUMENTS,
        &["`smoke`", "bidi-stream", "package.Service/Method"],
    );
    check(&["load", nobody, "-c", "0"], BAD_ARGUMENTS, &["'--in-flight <N>'", "0 is not in 1.."]);
    check(&["load", nobody, "--call", "a.B/C", "-n", "10", "-c", "0"], BAD_ARGUMENTS, &["0 is not in 1.."]);
    check(&["load", "http://host/path"], BAD_ARGUMENTS, &["has the path `/path`", "use http://host"]);
    check(&["call", "xds:///shop", "list"], BAD_ARGUMENTS, &["the scheme `xds`, which is not supported"]);
    check(&["call", "passthrough:///", "list"], BAD_ARGUMENTS, &["has no host"]);
    check(
        &["load", nobody, "-c", "1", "--connections", "2"],
        BAD_ARGUMENTS,
        &["-c 1 is less than --connections 2"],
    );
    check(&["load", nobody, "--cpus", "0-x"], BAD_ARGUMENTS, &["`0-x`"]);
    check(&["load", nobody, "--cpus", "1023"], BAD_ARGUMENTS, &["CPUs 1023"]);
    check(&["load", nobody, "--warmup", "9999years"], BAD_ARGUMENTS, &["--warmup", "a year"]);
    check(&["load", nobody, "--call", "a.B/C", "-z", "9999years"], BAD_ARGUMENTS, &["-z", "a year"]);
    check(&["lab", "codec", "--rounds", "4294967295"], BAD_ARGUMENTS, &["--rounds", "1..=1000"]);
    check(&["load", "::1:80"], BAD_ARGUMENTS, &["`::1:80`", "brackets"]);
    check(&["load", "localhost"], BAD_ARGUMENTS, &["`localhost`", "no port", "localhost:50051"]);
    check(&["load", "https://127.0.0.1:1"], FAILED, &["127.0.0.1:1", "check that the server is running"]);
    check(
        &["load", nobody, "--rps", "fast"],
        BAD_ARGUMENTS,
        &["--rps: invalid rate `fast`: `fast` is not a number"],
    );
}

#[test]
fn invalid_channels_flags_are_rejected() {
    let check =
        |rest: &[&str], parts: &[&str]| check(&[&["lab", "channels"], rest].concat(), BAD_ARGUMENTS, parts);
    check(&["--calls", "server-stream"], &["server-stream", "unary or ping-pong"]);
    check(&["-c", "0"], &["at least 1"]);
    check(&["--strategies", "many"], &["`many`", "per-worker"]);
    check(&["--round-trips", "5"], &["--round-trips"]);
    check(&["--budget", "1s"], &["but --budget is 1 s"]);
    check(&["--rounds", "0"], &["--rounds", "1..=1000"]);
    check(&["--rounds", "4294967295"], &["--rounds", "1..=1000"]);
    // 24 points in each round, plus windows without a point.
    let many = ["--quick", "--strategies", "1", "--budget", "30s", "--rounds", "1000"];
    check(&many, &["8026 windows take at least "]);
    check(&["--client-cpus", "x"], &["`x`"]);
    check(&["--against", "socket"], &["no channels"]);
    check(&["--method", "a.B/C"], &["--target"]);
    check(&["--target", "127.0.0.1:1", "--against", "tonic"], &["--against"]);
    check(&["--target", "127.0.0.1:1", "--data", "5x"], &["`5x`", "@FILE"]);
    check(&["--from", "x", "--target", "127.0.0.1:1"], &["--from", "cannot be used with"]);
}

#[test]
fn invalid_connections_flags_are_rejected() {
    let check = |rest: &[&str], parts: &[&str]| {
        check(&[&["lab", "connections"], rest].concat(), BAD_ARGUMENTS, parts);
    };
    check(&["--connections", "many"], &["`many`", "max"]);
    check(&["--connections", "4294967295"], &["nothing to measure"]);
    check(&["-c", "0"], &["at least 1"]);
    check(&["--active", "0%"], &["`0%`", "10%"]);
    check(&["--size", "1MiB"], &["8 KiB"]);
    check(&["--budget", "1s"], &["but --budget is 1 s"]);
    check(&["--against", "tonic", "--matrix"], &["--matrix", "one client for all servers"]);
    check(&["--method", "a.B/C"], &["--target"]);
    check(&["--target", "127.0.0.1:1", "--against", "tonic"], &["--against"]);
}

#[test]
fn missing_target_or_method_is_one_error() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let aim = |target: &str, parts: &[&str]| {
        let args = ["lab", "channels", "--quick", "--out", out.to_str().unwrap(), "--target", target];
        let args = [&args[..], &["--method", "a.B/C"]].concat();
        let (code, stdout, stderr) = outcome(thalweg(&args).output().unwrap());
        assert_eq!((code, stdout.as_str()), (Some(FAILED), ""), "{stderr}");
        assert!(parts.iter().all(|part| stderr.contains(part)), "{parts:?} in {stderr:?}");
        assert!(!stderr.contains("error: error:"), "{stderr}");
    };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    aim(&format!("127.0.0.1:{port}"), &["refused"]);
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    aim(&addresses[0], &["a.B/C", "UNIMPLEMENTED", "--method"]);
}

#[test]
fn invalid_link_flags_are_rejected() {
    let link = |options: &[&str], code: i32, parts: &[&str]| {
        let args = [&["link", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:1"], options].concat();
        check(&args, code, parts);
    };
    check(&["link", "--to", "127.0.0.1:1"], BAD_ARGUMENTS, &["--listen <ADDR>"]);
    check(&["link", "--listen", "127.0.0.1:0"], BAD_ARGUMENTS, &["--to <ADDR>"]);
    check(
        &["link", "--listen", "nonsense", "--to", "127.0.0.1:1"],
        BAD_ARGUMENTS,
        &["`nonsense`", "the port is missing", "HOST:PORT"],
    );
    link(&["--delay", "5"], BAD_ARGUMENTS, &["--delay", "time unit needed"]);
    link(&["--delay", "9999years"], BAD_ARGUMENTS, &["the delay is longer than a year"]);
    link(&["--jitter", "pareto:1ms"], BAD_ARGUMENTS, &["`pareto:1ms`", "normal:0.5ms"]);
    link(&["--rate", "1gb"], BAD_ARGUMENTS, &["`1gb`", "12.5MB/s"]);
    link(&["--buffer", "5X"], BAD_ARGUMENTS, &["`5X`", "64KiB"]);
    link(&["--loss-of-connection", "5s"], BAD_ARGUMENTS, &["`5s`", "after=10s"]);
    link(&["--stall", "5s"], BAD_ARGUMENTS, &["`5s`", "for=2s"]);
    link(&["--cpus", "1023"], BAD_ARGUMENTS, &["CPUs 1023"]);

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    check(&["link", "--listen", &taken, "--to", "127.0.0.1:1"], FAILED, &[&taken, "in use"]);
}

#[test]
fn unwritable_output_fails_before_run() {
    check(
        &["load", "127.0.0.1:1", "-o", "/nonexistent/result.json"],
        BAD_ARGUMENTS,
        &["/nonexistent/result.json", "No such file"],
    );
}

#[test]
fn missing_server_is_an_error() {
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let directory = tempfile::tempdir().unwrap();
    let result = directory.path().join("result.json");
    let target = format!("127.0.0.1:{port}");
    check(&["load", &target, "-o", result.to_str().unwrap()], FAILED, &[&target, "refused"]);
    assert!(!result.exists(), "a run without a result leaves a file behind");
    check(&["load", "unix:/nonexistent/socket"], FAILED, &["unix:/nonexistent/socket", "No such file"]);
}

#[test]
fn non_grpc_server_is_an_error() {
    let check_peer = |peer: fn(TcpStream), parts: &[&str]| {
        let target = listen(peer);
        let mut parts = parts.to_vec();
        parts.push(&target);
        check(&["load", &target, "--timeout", "1s"], FAILED, &parts);
    };
    check_peer(http1, &["HTTP/1"]);
    check_peer(tls_alert, &["TLS"]);
    check_peer(garbage, &["does not speak HTTP/2"]);
    check_peer(hang_up, &["closed the connection"]);
    check_peer(stall, &["within 1s"]);
    check_peer(stall_after_settings, &["DEADLINE_EXCEEDED", "within 1s"]);
}

/// Serves each connection with `peer` on a background thread.
fn listen(peer: fn(TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || peer(stream));
        }
    });
    address
}

fn http1(mut stream: TcpStream) {
    read_some(&mut stream);
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").unwrap();
    stall(stream);
}

fn tls_alert(mut stream: TcpStream) {
    read_some(&mut stream);
    stream.write_all(b"\x15\x03\x01\x00\x02\x02\x46").unwrap();
}

fn garbage(mut stream: TcpStream) {
    let noise: Vec<u8> = (0..500_u32).map(|i| (i * 167 + 13) as u8).collect();
    stream.write_all(&noise).unwrap();
    stall(stream);
}

fn hang_up(mut stream: TcpStream) {
    read_some(&mut stream);
}

/// Reads until the other side closes.
fn stall(mut stream: TcpStream) {
    let mut buffer = [0; 1024];
    while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
}

fn stall_after_settings(mut stream: TcpStream) {
    stream.write_all(b"\0\0\0\x04\0\0\0\0\0").unwrap();
    stall(stream);
}

fn read_some(stream: &mut TcpStream) {
    let _ = stream.read(&mut [0; 1024]).unwrap();
}

#[test]
fn unknown_stack_is_rejected() {
    let peers = tempfile::tempdir().unwrap();
    let directory = peers.path().to_str().unwrap();
    std::fs::create_dir(peers.path().join("grpc-go")).unwrap();
    std::fs::write(peers.path().join("grpc-go/not-built.txt"), "go is not installed").unwrap();
    let out = peers.path().join("out");
    let lab = |rest: &[&str], code: i32, parts: &[&str]| {
        let args = ["lab", "--out", out.to_str().unwrap(), "--peers", directory, "--against"];
        let (found, _, stderr) = outcome(thalweg(&[&args, rest].concat()).output().unwrap());
        assert_eq!(found, Some(code), "{rest:?}: {stderr}");
        assert!(parts.iter().all(|part| stderr.contains(part)), "{rest:?}: {parts:?} in {stderr:?}");
    };
    lab(&["tonik"], BAD_ARGUMENTS, &["`tonik`", "thalweg, socket, grpc-go", directory]);
    lab(&["grpc-go", "--server", "tonik"], BAD_ARGUMENTS, &["`tonik`"]);
    lab(&["../grpc-go"], BAD_ARGUMENTS, &["`../grpc-go`", "NAME:VARIANT"]);
    lab(&["thalweg:fast"], BAD_ARGUMENTS, &["`fast`", "thalweg"]);
    lab(&["grpc-go", "--matrix", "--client", "grpc-go"], BAD_ARGUMENTS, &["--matrix", "--client"]);
    lab(&["grpc-go", "--budget", "10s"], BAD_ARGUMENTS, &["but --budget is 10 s"]);
    lab(&["grpc-go"], FAILED, &["grpc-go is left out: go is not installed", "no stack to compare with"]);
    check(&["lab", "--client", "grpc-go"], BAD_ARGUMENTS, &["--against"]);
    check(&["lab", "--matrix"], BAD_ARGUMENTS, &["--against"]);
}

#[test]
fn unreadable_file_is_a_failure_whichever_flag_names_it() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let target = addresses[0].as_str();
    let no = "/nonexistent/file";
    let at = format!("@{no}");
    let unary = "grpc.testing.TestService/UnaryCall";
    for words in [
        &["load", target, "--call", unary, "-d", &at][..],
        &["load", target, "--rps", &at],
        &["load", target, "--service-config", &at],
        &["load", target, "--scenario", no],
        &["load", target, "--proto", no, "--call", unary],
        &["load", target, "--baseline", no],
        &["load", target, "--cacert", no],
        &["load", target, "--cert", no, "--key", no],
        &["call", target, unary, "-d", &at],
        &["call", target, unary, "--service-config", &at],
        &["call", target, unary, "--protoset", no],
        &["call", target, unary, "--cacert", no],
        &["serve", "--listen", "127.0.0.1:0", "--cert", no, "--key", no],
        &["merge", no],
    ] {
        check(words, FAILED, &[no, "No such file"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("invalid").display().to_string();
    std::fs::write(&file, "[[").unwrap();
    let at = format!("@{file}");
    for words in [
        &["load", target, "--call", unary, "-d", &at][..],
        &["load", target, "--rps", &at],
        &["load", target, "--service-config", &at],
        &["load", target, "--cacert", &file],
        &["call", target, unary, "-d", &at],
        &["serve", "--listen", "127.0.0.1:0", "--cert", &file, "--key", &file],
    ] {
        check(words, BAD_ARGUMENTS, &[]);
    }
}
