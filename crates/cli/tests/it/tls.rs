//! Tests TLS of `serve` and `load` with certificates of `thalweg certs`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Running, outcome, thalweg};

/// Runs `thalweg load`. Asserts success, or part of the error.
fn check(target: &str, flags: &[&str], expected: Result<(), &str>) {
    let mut args = vec!["load", target, "-n", "10", "-c", "1"];
    args.extend(flags);
    let (code, _, stderr) = outcome(thalweg(&args).output().unwrap());
    match expected {
        Ok(()) => assert_eq!((code, stderr.as_str()), (Some(0), ""), "{args:?}"),
        Err(part) => {
            assert!(matches!(code, Some(1 | 2)) && stderr.contains(part), "{args:?}: {code:?} {stderr}");
        }
    }
}

#[test]
fn generated_certificates_are_served_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let out = path("certs");
    let (code, stdout, stderr) = outcome(thalweg(&["certs", "--out", &out]).output().unwrap());
    assert_eq!((code, stdout.lines().count(), stderr.as_str()), (Some(0), 6, ""));
    let key = fs::metadata(path("certs/server.key")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    // Existing files are not overwritten.
    let (code, _, stderr) = outcome(thalweg(&["certs", "--out", &out]).output().unwrap());
    assert!(code == Some(1) && stderr.contains("--force"), "{stderr}");
    assert_eq!(thalweg(&["certs", "--out", &path("other"), "elsewhere"]).status().unwrap().code(), Some(0));

    let (chain, key, authority) = (path("certs/server.pem"), path("certs/server.key"), path("certs/ca.pem"));
    let tls = ["--cert", &chain, "--key", &key];
    let (_server, addresses) = Running::serve_with(&["127.0.0.1:0"], &tls);
    let target = &addresses[0];
    check(target, &["--cacert", &authority], Ok(()));
    check(&format!("https://{target}"), &["--insecure"], Ok(()));
    check(target, &["--cacert", &authority, "--servername", "localhost"], Ok(()));
    check(target, &["--cacert", &authority, "--servername", "elsewhere"], Err("not valid for name"));
    check(target, &["--cacert", &path("other/ca.pem")], Err("no trusted authority"));
    check(target, &[], Err("the server uses TLS, and this channel does not"));
    check(target, &["--cacert", &path("certs/ca.key")], Err("swapped"));
    check(target, &["--cacert", "/no/such.pem"], Err("/no/such.pem"));
    check(target, &["--cert", &chain], Err("--key"));

    let (_mutual, addresses) =
        Running::serve_with(&["127.0.0.1:0"], &[&tls[..], &["--cacert", &authority]].concat());
    let target = &addresses[0];
    check(target, &["--cacert", &authority], Err("set a TLS identity"));
    let client = [path("certs/client.pem"), path("certs/client.key")];
    check(target, &["--cacert", &authority, "--cert", &client[0], "--key", &client[1]], Ok(()));

    let (_for_this_run, addresses) = Running::serve_with(&["127.0.0.1:0"], &["--tls"]);
    check(&addresses[0], &["--insecure"], Ok(()));
    check(&addresses[0], &["-insecure"], Ok(()));
    check(&addresses[0], &["--skipTLS"], Ok(()));
    let (_plain, addresses) = Running::serve(&["127.0.0.1:0"]);
    check(&addresses[0], &["--tls"], Err("the server speaks HTTP/2 without TLS"));

    let unfit = ["serve", "--cert", &chain, "--key", &client[1], "--listen", "127.0.0.1:0"];
    let (code, _, stderr) = outcome(thalweg(&unfit).output().unwrap());
    assert!(code == Some(2) && stderr.contains("does not match the certificate"), "{stderr}");
}

#[test]
fn server_serves_several_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let file = |maker: &str, name: &str| folder.path().join(maker).join(name).display().to_string();
    for (maker, name) in [("first", "localhost"), ("second", "shop.test"), ("third", "*.shop.test")] {
        let args = ["certs", "--out", &folder.path().join(maker).display().to_string(), name];
        assert_eq!(thalweg(&args).status().unwrap().code(), Some(0));
    }
    let pair = |cert: &str, key: &str| {
        ["--cert".to_owned(), file(cert, "server.pem"), "--key".to_owned(), file(key, "server.key")]
    };
    let pairs = [pair("first", "first"), pair("second", "second"), pair("third", "third")].concat();
    let pairs: Vec<&str> = pairs.iter().map(String::as_str).collect();
    let (_server, addresses) = Running::serve_with(&["127.0.0.1:0"], &pairs);
    for (name, maker) in [("localhost", "first"), ("shop.test", "second"), ("a.shop.test", "third")] {
        for authority in ["first", "second", "third"] {
            let flags = ["--servername", name, "--cacert", &file(authority, "ca.pem")];
            let expected = if authority == maker { Ok(()) } else { Err("no trusted authority") };
            check(&addresses[0], &flags, expected);
        }
    }
    let flags = ["--servername", "elsewhere.test", "--cacert", &file("first", "ca.pem")];
    check(&addresses[0], &flags, Err("localhost"));

    let refused = |flags: &[String], parts: &[&str]| {
        let mut args = vec!["serve", "--listen", "127.0.0.1:0"];
        args.extend(flags.iter().map(String::as_str));
        let (code, _, stderr) = outcome(thalweg(&args).output().unwrap());
        assert!(code == Some(2) && parts.iter().all(|part| stderr.contains(part)), "{args:?}: {stderr}");
    };
    let second = file("second", "server.pem");
    let unfit = [pair("first", "first"), pair("second", "third")].concat();
    refused(&unfit, &[&second, &file("third", "server.key"), "does not match the certificate"]);
    let one_more = [&pair("first", "first")[..], &["--cert".to_owned(), second.clone()]].concat();
    refused(&one_more, &["2 --cert but 1 --key"]);
    let twice = [pair("first", "first"), pair("second", "second"), pair("second", "second")].concat();
    refused(&twice, &["`shop.test` is in two certificates", &second]);
}
