//! A server's TLS with third-party programs: `openssl s_client` checks accepted and refused parameters, and curl makes
//! a call.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::cases::Cases;
use super::rust;
use crate::failure::Result;
use crate::files::{self, list, text};
use crate::job::Job;
use crate::server::Server;
use crate::{certificates, tools, workspace};

/// Accepted TLS 1.2 cipher suites, by the certificate's key type. HTTP/2 prohibits most others (RFC 9113 §9.2.2).
const ACCEPTED: &[&[&str]] = &[
    &["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"],
    &["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"],
];

/// Kinds of cipher suites that this openssl must support to make the refusals meaningful.
const KINDS: &[&str] =
    &["ADH-", "NULL-MD5", "-NULL-SHA", "AES128-SHA", "AES128-GCM-SHA256", "DHE-RSA-", "CCM"];

/// Runs of `openssl s_client` and of curl, which sends a gRPC message.
///
/// - `server`: with an ECDSA certificate; `mutual`: clients must have a certificate, too.
/// - `flags`: words after the address; words in capitals are files of the folder.
/// - `sends`: data sent after the handshake; nothing, or [`GOODBYE`].
/// - `says`: required parts of the output; [`CLOSED`] if the server closed with close_notify.
/// - `exit_codes`: allowed exit codes of curl. 35 is a failed handshake, 55 and 56 a failure while sending and
///   receiving, 60 an unverifiable certificate.
const CASES: &str = "tls/cases.json";

/// The preface, SETTINGS, and GOAWAY: an HTTP/2 server then closes the connection (RFC 9113 §3.4, §6.8).
const GOODBYE: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// Printed by `openssl s_client` when the server closed with close_notify.
const CLOSED: &str = "closed\n";
const NOTHING: &[u8] = b"";

/// `SimpleRequest { response_size: 5 }`, and its `SimpleResponse`: a payload of five zeros.
const REQUEST: &[u8] = b"\0\0\0\0\x02\x10\x05";
const RESPONSE: &[u8] = b"\0\0\0\0\x09\x0a\x07\x12\x05\0\0\0\0\0";

pub(super) fn check() -> Result<String> {
    tools::debian("openssl curl", &["openssl", "curl"])?;
    let folder = Folder::make()?;
    let ecdsa = folder.serve("server.pem", "server.key", "")?;
    let rsa = folder.serve("rsa.pem", "rsa.key", "")?;
    let mutual = folder.serve("server.pem", "server.key", "--cacert CA")?;
    let at = |case: &Value| if case["server"] == "mutual" { mutual.port() } else { ecdsa.port() };
    let all = files::json(&workspace::suites().join(CASES))?;
    let mut cases = Cases::default();
    for case in list(&all["openssl"]) {
        let sends = if case["sends"] == "goodbye" { GOODBYE } else { NOTHING };
        let captured = folder.s_client(at(case), text(&case["flags"]), sends)?;
        let says: Vec<&str> = list(&case["says"]).iter().map(text).collect();
        cases.count(text(&case["about"]), check_contains(&captured, &says))?;
    }
    cases.count("renegotiation", Folder::renegotiation(ecdsa.port()))?;
    for post in list(&all["curl"]) {
        cases.count(text(&post["about"]), folder.post(at(post), post))?;
    }
    let suites = folder.suites([ecdsa.port(), rsa.port()], &mut cases)?;
    let hybrid = folder.hybrid(ecdsa.port())?;
    for server in [ecdsa, rsa, mutual] {
        server.stop_gracefully()?;
    }
    cases.verdict(&format!("cases of openssl and curl, with {suites}; {hybrid}"))
}

/// Checks that the output contains all of `parts`.
fn check_contains(captured: &str, parts: &[&str]) -> Result<()> {
    let missing: Vec<_> = parts.iter().filter(|part| !captured.contains(**part)).collect();
    ensure!(missing.is_empty(), "missing {missing:?}");
    Ok(())
}

/// The certificates of this step.
struct Folder {
    path: PathBuf,
    thalweg: PathBuf,
}

impl Folder {
    fn make() -> Result<Self> {
        let thalweg = rust::command()?;
        let path = certificates::make(Job::new(&thalweg), "test-tls")?;
        let rsa = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext \
                   subjectAltName=DNS:localhost -keyout rsa.key -out rsa.pem";
        Job::new("openssl").words(rsa).directory(&path).run()?;
        fs::write(path.join("request"), REQUEST)?;
        Ok(Self { path, thalweg })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Adds these words; words in capitals are replaced by paths of files.
    fn with(&self, job: Job, words: &str) -> Job {
        words.split_whitespace().fold(job, |job, word| match word {
            "CA" => job.arg(self.file("ca.pem")),
            "CERT" => job.arg(self.file("client.pem")),
            "KEY" => job.arg(self.file("client.key")),
            "RSACERT" => job.arg(self.file("rsa.pem")),
            "RSAKEY" => job.arg(self.file("rsa.key")),
            "SESSION12" | "SESSION13" => job.arg(self.file(word)),
            word => job.arg(word),
        })
    }

    fn serve(&self, chain: &str, key: &str, words: &str) -> Result<Server> {
        Server::start(|port| {
            let serve = Job::new(&self.thalweg).words(&format!("serve --listen 127.0.0.1:{port}"));
            let serve = serve.arg("--cert").arg(self.file(chain)).arg("--key").arg(self.file(key));
            self.with(serve, words)
        })
    }

    /// All output of `openssl s_client`; it implies the exit status.
    fn s_client(&self, port: u16, flags: &str, sends: &[u8]) -> Result<String> {
        let input = self.file("input");
        fs::write(&input, sends)?;
        let job = Job::new("openssl").words(&format!("s_client -connect 127.0.0.1:{port}"));
        Ok(self.with(job, flags).stdin(&input).seconds(20).output()?.all())
    }

    /// Checks that renegotiation is refused (RFC 9113 §9.2.1). The client asks after it has received SETTINGS: openssl
    /// treats application data during a handshake as an error.
    fn renegotiation(port: u16) -> Result<()> {
        const SETTINGS: &[u8] = b"\x04\0\0\0\0\0";
        let job = Job::new("openssl").words(&format!("s_client -connect 127.0.0.1:{port} -alpn h2 -tls1_2"));
        let captured = job.seconds(20).output_with_reply(SETTINGS, b"R\n")?.all();
        check_contains(&captured, &["RENEGOTIATING", "no renegotiation"])
    }

    /// Makes a call with curl and checks the case's expectations.
    fn post(&self, port: u16, post: &Value) -> Result<()> {
        let (head, body) = (self.file("head"), self.file("body"));
        for path in [&head, &body] {
            fs::write(path, "")?;
        }
        let url = format!("https://localhost:{port}/grpc.testing.BenchmarkService/UnaryCall");
        let job = Job::new("curl")
            .words("--silent --show-error --header content-type:application/grpc --header te:trailers")
            .words(&format!("--resolve localhost:{port}:127.0.0.1 --data-binary"))
            .arg(format!("@{}", self.file("request").display()));
        let job =
            self.with(job, text(&post["flags"])).arg("--dump-header").arg(&head).arg("--output").arg(&body);
        let status = job.arg(&url).seconds(20).status()?;
        let (head, body) = (fs::read_to_string(head)?, fs::read(body)?);
        let responded = head.starts_with("HTTP/2 200") && head.contains("grpc-status: 0") && body == RESPONSE;
        let is_among = |code: i32| list(&post["exit_codes"]).contains(&code.into());
        let is_right = status.code().is_some_and(|code| is_among(code) && responded == (code == 0));
        ensure!(is_right, "{status}, {head:?} {body:?}");
        Ok(())
    }

    /// Tries each suite of this openssl for TLS 1.2 and older, alone, at each server. Checks that exactly the right
    /// ones are accepted.
    fn suites(&self, ports: [u16; 2], cases: &mut Cases) -> Result<String> {
        let names = Job::new("openssl").words("ciphers -s -tls1_2 ALL:COMPLEMENTOFALL:@SECLEVEL=0").text()?;
        let names: Vec<&str> = names.trim().split(':').collect();
        if let Some(kind) = KINDS.iter().find(|kind| !names.iter().any(|name| name.contains(**kind))) {
            bail!("openssl has no cipher suite of the kind {kind}");
        }
        let mut accepted_by_any = BTreeSet::new();
        for name in &names {
            for (port, taken) in ports.iter().zip(ACCEPTED) {
                let flags = format!("-alpn h2 -tls1_2 -cipher {name}:@SECLEVEL=0");
                let captured = self.s_client(*port, &flags, NOTHING)?;
                let is_accepted = captured.contains(&format!("New, TLSv1.2, Cipher is {name}\n"));
                let is_refused = captured.contains("alert handshake failure");
                if is_accepted {
                    accepted_by_any.insert(*name);
                }
                let is_right = is_accepted != is_refused && is_accepted == taken.contains(name);
                let wrong = || failed!("taken {is_accepted}, refused {is_refused}");
                cases.count(name, is_right.then_some(()).ok_or_else(wrong))?;
            }
        }
        Ok(format!("{} of {} suites of TLS 1.2 taken", accepted_by_any.len(), names.len()))
    }

    /// Checks X25519MLKEM768, which openssl supports since 3.5.
    fn hybrid(&self, port: u16) -> Result<String> {
        let captured = self.s_client(port, "-alpn h2 -groups X25519MLKEM768 -ign_eof", GOODBYE)?;
        if captured.contains("passed invalid argument")
            || captured.contains("-groups, X25519MLKEM768) failed")
        {
            let version = Job::new("openssl").words("version").text()?;
            let version: Vec<&str> = version.split_whitespace().take(2).collect();
            return Ok(format!("no X25519MLKEM768 in {}", version.join(" ")));
        }
        check_contains(&captured, &["X25519MLKEM768", CLOSED])?;
        Ok("X25519MLKEM768".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_programs_have_cases() {
        let cases = files::json(&workspace::suites().join(CASES)).unwrap();
        for (program, expected) in [("openssl", "says"), ("curl", "exit_codes")] {
            let cases = cases[program].as_array().unwrap();
            assert!(!cases.is_empty());
            let is_whole = |case: &Value| case["flags"].is_string() && !case[expected][0].is_null();
            assert!(cases.iter().all(is_whole), "{program}");
        }
    }
}
