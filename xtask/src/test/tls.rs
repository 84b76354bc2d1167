//! A server's TLS as other people's programs see it: `openssl s_client` asks what is agreed on and what is refused,
//! curl makes a call.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::job::{Failure, Job, Log};
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::{certificates, tools};

/// The cipher suites of TLS 1.2 that we take, by the key of the certificate. HTTP/2 forbids most others (RFC 9113
/// §9.2.2).
const TAKEN: &[&[&str]] = &[
    &["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"],
    &["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"],
];

/// Kinds of cipher suites that this openssl must know, so that a refusal says something.
const KINDS: &[&str] =
    &["ADH-", "NULL-MD5", "-NULL-SHA", "AES128-SHA", "AES128-GCM-SHA256", "DHE-RSA-", "CCM"];

/// Runs of `openssl s_client` and of curl, which sends a gRPC message.
///
/// - `server`: with an ECDSA certificate; `mutual`: clients must have a certificate, too.
/// - `flags`: behind the address; what is written in capitals is a file of the folder.
/// - `sends`: what it sends once hands are shaken; nothing, or [`GOODBYE`].
/// - `says`: what it prints, among other things; [`CLOSED`] is what it prints when the server has closed in order.
/// - `exit_codes`: curl's, of which it is one. 35 is a handshake that failed, 55 and 56 a connection that did when it
///   was written to and read, 60 a certificate that can't be verified.
const CASES: &str = include_str!("../../suites/tls/cases.json");

/// The preface, SETTINGS, and GOAWAY: whoever speaks HTTP/2 closes the connection (RFC 9113 §3.4, §6.8).
const GOODBYE: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// What `openssl s_client` prints when the server has closed in order, with close_notify.
const CLOSED: &str = "closed\n";
const NOTHING: &[u8] = b"";

/// `SimpleRequest { response_size: 5 }`, and the `SimpleResponse` that answers: a payload with five zeros.
const REQUEST: &[u8] = b"\0\0\0\0\x02\x10\x05";
const RESPONSE: &[u8] = b"\0\0\0\0\x09\x0a\x07\x12\x05\0\0\0\0\0";

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    tools::debian("openssl curl", &["openssl", "curl"], log)?;
    let folder = Folder::make(log)?;
    let ecdsa = folder.serve("server.pem", "server.key", "", log)?;
    let rsa = folder.serve("rsa.pem", "rsa.key", "", log)?;
    let mutual = folder.serve("server.pem", "server.key", "--cacert CA", log)?;
    let port = |case: &Value| if case["server"] == "mutual" { mutual.0 } else { ecdsa.0 };
    let all_cases: Value = serde_json::from_str(CASES)
        .map_err(|why| Failure::failed(format!("suites/tls/cases.json is not JSON: {why}")))?;
    let of = |program: &str| all_cases[program].as_array().map_or(&[][..], Vec::as_slice);
    let (cases, posts) = (of("openssl"), of("curl"));
    let mut wrong = Vec::new();
    for case in cases {
        let sends = if case["sends"] == "goodbye" { GOODBYE } else { NOTHING };
        let said = folder.s_client(port(case), text(case, "flags"), sends, log)?;
        let says: Vec<&str> =
            case["says"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        wrong.extend(missing(text(case, "about"), &says, &said));
    }
    wrong.extend(Folder::renegotiation(ecdsa.0, log)?);
    for post in posts {
        wrong.extend(folder.post(port(post), post, log)?);
    }
    let mut taken = 0;
    let (suites, refused) = folder.suites(&[ecdsa.0, rsa.0], log, |is_taken, what| {
        taken += usize::from(is_taken);
        wrong.extend(what);
    })?;
    let hybrid = folder.hybrid(ecdsa.0, log)?;
    for (_, server) in [ecdsa, rsa, mutual] {
        let status = server.stop()?;
        wrong.extend((!status.success()).then(|| format!("a server ended with {status}")));
    }
    let (cases, posts) = (cases.len() + 1, posts.len());
    let account = format!(
        "openssl: {cases} cases, {suites} suites of TLS 1.2 ({taken} taken, {refused} refused), {hybrid}; curl: {posts}"
    );
    if wrong.is_empty() {
        return Ok(account);
    }
    Err(Failure::failed(format!("{} went wrong ({}); {account}", wrong.len(), wrong.join("; "))))
}

fn text<'c>(case: &'c Value, key: &str) -> &'c str {
    case[key].as_str().unwrap_or_default()
}

/// Says so if some of the parts are missing.
fn missing(about: &str, parts: &[&str], said: &str) -> Option<String> {
    let missing: Vec<_> = parts.iter().filter(|part| !said.contains(**part)).collect();
    (!missing.is_empty()).then(|| format!("{about}: missing {missing:?}"))
}

/// Where the certificates of this step lie.
struct Folder {
    path: PathBuf,
    thalweg: PathBuf,
}

impl Folder {
    fn make(log: &Log) -> Result<Self, Failure> {
        let thalweg = rust::command(log)?;
        let path = certificates::make(Job::new(&thalweg), "test-tls", log)?;
        let rsa = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext \
                   subjectAltName=DNS:localhost -keyout rsa.key -out rsa.pem";
        Job::new("openssl").words(rsa).directory(&path).run(log)?;
        fs::write(path.join("request"), REQUEST)?;
        Ok(Self { path, thalweg })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Adds these words, in which capitals name files.
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

    fn serve(&self, chain: &str, key: &str, words: &str, log: &Log) -> Result<(u16, Server), Failure> {
        let port = free_port()?;
        let serve = Job::new(&self.thalweg).words(&format!("serve --listen 127.0.0.1:{port}"));
        let serve = serve.arg("--cert").arg(self.file(chain)).arg("--key").arg(self.file(key));
        Ok((port, Server::start(&self.with(serve, words), port, log)?))
    }

    /// All that `openssl s_client` prints; how it ends follows from that.
    fn s_client(&self, port: u16, flags: &str, sends: &[u8], log: &Log) -> Result<String, Failure> {
        let input = self.file("input");
        fs::write(&input, sends)?;
        let job = Job::new("openssl").words(&format!("s_client -connect 127.0.0.1:{port}"));
        let output = self.with(job, flags).stdin(&input).seconds(20).output(log)?;
        Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }

    /// That a client is refused to negotiate anew (RFC 9113 §9.2.1). It asks when it has the server's SETTINGS: to
    /// openssl, what comes amid a handshake is an error of its own.
    fn renegotiation(port: u16, log: &Log) -> Result<Option<String>, Failure> {
        const SETTINGS: &[u8] = b"\x04\0\0\0\0\0";
        let job = Job::new("openssl").words(&format!("s_client -connect 127.0.0.1:{port} -alpn h2 -tls1_2"));
        let output = job.seconds(20).output_with_reply(SETTINGS, b"R\n", log)?;
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        Ok(missing("renegotiation", &["RENEGOTIATING", "no renegotiation"], &said))
    }

    /// Says so if it goes otherwise than it should.
    fn post(&self, port: u16, post: &Value, log: &Log) -> Result<Option<String>, Failure> {
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
            self.with(job, text(post, "flags")).arg("--dump-header").arg(&head).arg("--output").arg(&body);
        let status = job.arg(&url).seconds(20).status(log)?;
        let (head, body) = (fs::read_to_string(head)?, fs::read(body)?);
        let answered = head.starts_with("HTTP/2 200") && head.contains("grpc-status: 0") && body == RESPONSE;
        let is_among = |post: &Value, code: i32| {
            post["exit_codes"].as_array().is_some_and(|codes| codes.contains(&code.into()))
        };
        let is_right = status.code().is_some_and(|code| is_among(post, code) && answered == (code == 0));
        Ok((!is_right).then(|| format!("{}: {status}, {head:?} {body:?}", text(post, "about"))))
    }

    /// Each suite that this openssl has for TLS 1.2 and older, alone, at each server: whether it is taken, and whether
    /// that is right. How many there are, and how many no server takes.
    fn suites(
        &self,
        ports: &[u16],
        log: &Log,
        mut tell: impl FnMut(bool, Option<String>),
    ) -> Result<(usize, usize), Failure> {
        let list =
            Job::new("openssl").words("ciphers -s -tls1_2 ALL:COMPLEMENTOFALL:@SECLEVEL=0").text(log)?;
        let suites: Vec<&str> = list.trim().split(':').collect();
        if let Some(kind) = KINDS.iter().find(|kind| !suites.iter().any(|suite| suite.contains(**kind))) {
            return Err(Failure::failed(format!(
                "openssl has no suite of the kind {kind}: nothing was asked"
            )));
        }
        let mut refused = 0;
        for suite in &suites {
            let mut is_taken_by_any = false;
            for (port, taken) in ports.iter().zip(TAKEN) {
                let flags = format!("-alpn h2 -tls1_2 -cipher {suite}:@SECLEVEL=0");
                let said = self.s_client(*port, &flags, NOTHING, log)?;
                let is_taken = said.contains(&format!("New, TLSv1.2, Cipher is {suite}\n"));
                let is_refused = said.contains("alert handshake failure");
                let is_right = is_taken != is_refused && is_taken == taken.contains(suite);
                is_taken_by_any |= is_taken;
                let wrong = || format!("{suite}: taken {is_taken}, refused {is_refused}");
                tell(is_taken, (!is_right).then(wrong));
            }
            refused += usize::from(!is_taken_by_any);
        }
        Ok((suites.len(), refused))
    }

    /// X25519MLKEM768, which openssl has since 3.5.
    fn hybrid(&self, port: u16, log: &Log) -> Result<String, Failure> {
        let said = self.s_client(port, "-alpn h2 -groups X25519MLKEM768 -ign_eof", GOODBYE, log)?;
        if said.contains("passed invalid argument") || said.contains("-groups, X25519MLKEM768) failed") {
            let version = Job::new("openssl").words("version").text(log)?;
            let version: Vec<&str> = version.split_whitespace().take(2).collect();
            return Ok(format!("no X25519MLKEM768 in {}", version.join(" ")));
        }
        match missing("X25519MLKEM768", &["X25519MLKEM768", CLOSED], &said) {
            None => Ok("X25519MLKEM768".to_owned()),
            Some(wrong) => Err(Failure::failed(wrong)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    #[test]
    fn cases_are_there_for_both_programs() {
        let cases: Value = serde_json::from_str(super::CASES).unwrap();
        for (program, expected) in [("openssl", "says"), ("curl", "exit_codes")] {
            let cases = cases[program].as_array().unwrap();
            assert!(!cases.is_empty());
            let is_whole = |case: &Value| case["flags"].is_string() && !case[expected][0].is_null();
            assert!(cases.iter().all(is_whole), "{program}");
        }
    }
}
