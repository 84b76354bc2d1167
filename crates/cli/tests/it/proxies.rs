//! Tests `--proxy` of `load` and `call`.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::support::{Running, outcome, thalweg};

const UNARY: &str = "grpc.testing.TestService/UnaryCall";
/// A target whose name only the proxy knows.
const TARGET: &str = "orders.invalid:50051";

/// Starts a proxy that connects to `server` whatever it is asked for. Returns its address, and the request lines.
fn proxy(server: String) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (requests, received) = channel();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut request) = (client.unwrap(), Vec::new());
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            let request = String::from_utf8(request).unwrap();
            let _ = requests.send(request.lines().next().unwrap().to_owned());
            let server = TcpStream::connect(&server).unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            for (from, to) in [(&client, &server), (&server, &client)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    (address, received)
}

#[test]
fn proxy_is_used_only_if_asked_for() {
    let (_server, mut addresses) = Running::serve(&["127.0.0.1:0"]);
    let (proxy, requests) = proxy(addresses.remove(0));
    let url = format!("http://{proxy}");
    let check = |mut command: Command, expected: bool| {
        let (code, _, stderr) = outcome(command.output().unwrap());
        let request = requests.try_iter().last();
        assert_eq!(
            request.as_deref(),
            expected.then_some(&*format!("CONNECT {TARGET} HTTP/1.1")),
            "{stderr}"
        );
        assert_eq!(code == Some(0), expected, "{stderr}");
        assert!(expected || stderr.contains("failed to resolve orders.invalid:50051"), "{stderr}");
    };
    let in_environment = |words: &[&str], no_proxy: &str| {
        let mut command = thalweg(words);
        command.env("https_proxy", &url).env("no_proxy", no_proxy).env_remove("HTTPS_PROXY");
        command
    };
    let (call, load) = (["call", TARGET, UNARY], ["load", TARGET, "--call", UNARY, "-n", "10"]);
    for words in [&call[..], &load] {
        let asked = |proxy: &'static str| [words, &["--proxy", proxy]].concat();
        check(in_environment(words, ""), false);
        check(in_environment(&asked("env"), ""), true);
        check(in_environment(&asked("env"), "x.test,.invalid"), false);
        check(thalweg(&[words, &["--proxy", &url]].concat()), true);
    }
}

#[test]
fn invalid_proxies_are_bad_arguments() {
    for words in [["call", "127.0.0.1:1", "list"], ["load", "127.0.0.1:1", "-n1"]] {
        let words = [&words[..], &["--proxy", "ftp://me:secret@proxy"]].concat();
        let (code, _, stderr) = outcome(thalweg(&words).output().unwrap());
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains("invalid proxy `ftp://proxy`: unknown scheme"), "{stderr}");
    }
}
