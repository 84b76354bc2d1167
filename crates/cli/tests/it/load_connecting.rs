//! Tests how `thalweg load` connects: reflection metadata, timeouts and keepalive.

use std::net::TcpListener;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use thalweg::interceptor::{Call, Next};
use thalweg::{ListenAddress, Server, Status};
use thalweg_services::health::HealthReporter;
use thalweg_services::reflection::Reflection;

use crate::support::{Running, outcome, thalweg};

const CHECK: &str = "grpc.health.v1.Health/Check";
const WATCH: &str = "grpc.health.v1.Health/Watch";

/// The server allows reflection only with `x-who: admin`, and other calls only without it.
#[test]
fn reflection_has_separate_metadata() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = said.clone();
    let server = runtime.block_on(async {
        let watch = move |call: Call, next: Next| {
            let who = call.metadata().get("x-who").map(|who| who.to_str().unwrap().to_owned());
            let is_reflection = call.method().path().contains("ServerReflection");
            let is_admin = who.as_deref() == Some("admin");
            heard.lock().unwrap().push((is_reflection, who));
            async move {
                if is_reflection != is_admin {
                    return Err(Status::permission_denied("it is not for you"));
                }
                next.run(call).await
            }
        };
        Server::builder()
            .interceptor(watch)
            .add_service(HealthReporter::new().service())
            .add_service(Reflection::builder().build().unwrap())
            .bind(&["127.0.0.1:0".parse::<ListenAddress>().unwrap()])
            .await
            .unwrap()
    });
    let target = server.local_addresses()[0].to_string();
    runtime.spawn(server.serve());
    let load = |flags: &[&str]| {
        let words = [&["load", &target, "--call", CHECK, "-n", "3", "-c", "1", "-m", "x-who: user"], flags];
        outcome(thalweg(&words.concat()).output().unwrap())
    };
    let (code, _, stderr) = load(&["--reflect-metadata", "x-who: admin"]);
    assert_eq!(code, Some(0), "{stderr}");
    let of = |is_reflection: bool| -> Vec<String> {
        let said = said.lock().unwrap();
        said.iter().filter(|it| it.0 == is_reflection).filter_map(|it| it.1.clone()).collect()
    };
    assert_eq!(of(false), ["user"; 3]);
    assert!(!of(true).is_empty() && of(true).iter().all(|who| who == "admin"), "{:?}", of(true));
    let (code, _, stderr) = load(&[]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("it is not for you"), "{stderr}");
}

#[test]
fn server_without_benchmark_service_names_the_flag() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(async {
        let address = "127.0.0.1:0".parse::<ListenAddress>().unwrap();
        Server::builder().add_service(HealthReporter::new().service()).bind(&[address]).await.unwrap()
    });
    let target = server.local_addresses()[0].to_string();
    runtime.spawn(server.serve());
    let (code, _, stderr) = outcome(thalweg(&["load", &target, "-n", "1"]).output().unwrap());
    assert_eq!(code, Some(1), "{stderr}");
    let said = format!("{target} does not offer grpc.testing.BenchmarkService; use --call ");
    assert!(stderr.contains(&said), "{stderr}");
}

#[test]
fn connect_timeout_is_separate() {
    // Accepts connections but never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = silent.local_addr().unwrap().to_string();
    let check = |flags: &[&str]| {
        let began = Instant::now();
        let words = [&["load", &target, "--timeout", "1h", "--connect-timeout", "300ms"], flags].concat();
        let (code, _, stderr) = outcome(thalweg(&words).output().unwrap());
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains("300ms"), "{stderr}");
        assert!(began.elapsed() < Duration::from_secs(60));
    };
    check(&["--call", CHECK]);
    check(&[]);
    // A deadline too short for a distant server does not prevent connecting.
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let mut link =
        Running::start(&["link", "--listen", "127.0.0.1:0", "--to", &addresses[0], "--delay", "100ms"]);
    let far = link.line().strip_prefix("listening on ").unwrap().to_owned();
    let short = |flags: &[&str]| {
        let words = [&["load", &far, "--call", CHECK, "-n", "2", "--timeout", "50ms"], flags].concat();
        let (code, _, stderr) = outcome(thalweg(&words).output().unwrap());
        assert_eq!(code, Some(1), "{stderr}");
        stderr
    };
    let stderr = short(&["--connect-timeout", "1m"]);
    assert!(stderr.contains("2 of 2 calls failed") && stderr.contains("DEADLINE_EXCEEDED"), "{stderr}");
    let stderr = short(&[]);
    assert!(stderr.contains("within 50ms"), "{stderr}");
}

#[test]
fn keepalive_detects_silent_server() {
    let (server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["load", &addresses[0], "--call", WATCH, "-n", "1", "-c", "1", "--keepalive", "10s"];
    let words = [&words[..], &["--timeout", "1h", "-O", "json", "--announce"]].concat();
    let client = thalweg(&words).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    server.signal(Signal::SIGSTOP);
    let (code, stdout, stderr) = outcome(client.wait_with_output().unwrap());
    server.signal(Signal::SIGCONT);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("UNAVAILABLE") && stderr.contains("keepalive"), "{stderr}");
    let json = stdout.split_once('{').map(|(_, rest)| format!("{{{rest}")).unwrap();
    let run: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(run["errors"]["UNAVAILABLE"], 1, "{run}");
}

#[test]
fn bare_connections_have_no_keepalive() {
    let (code, _, stderr) = outcome(
        thalweg(&["peer", "load", "127.0.0.1:1", "--bare", "grpc", "--keepalive-time", "10s"])
            .output()
            .unwrap(),
    );
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--keepalive-time"), "{stderr}");
}
