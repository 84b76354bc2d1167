//! A server's TLS as other people's programs see it: `openssl s_client` asks what is agreed on and what is refused,
//! curl makes a call.

use std::fs;
use std::path::PathBuf;

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

/// `openssl s_client` once.
struct Case {
    about: &'static str,
    server: Kind,
    /// Behind the address; what is written in capitals is a file of the folder.
    flags: &'static str,
    /// What it sends once hands are shaken.
    sends: &'static [u8],
    /// What it prints, among other things.
    says: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// With an ECDSA certificate.
    Ecdsa,
    /// The same, and clients must have a certificate.
    Mutual,
}

/// The preface, SETTINGS, and GOAWAY: whoever speaks HTTP/2 closes the connection (RFC 9113 §3.4, §6.8).
const GOODBYE: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// What `openssl s_client` prints when the server has closed in order, with close_notify.
const CLOSED: &str = "closed\n";
const NOTHING: &[u8] = b"";

const CASES: &[Case] = &[
    Case {
        about: "TLS 1.3, ALPN, a certificate that can be verified",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -tls1_3 -CAfile CA -verify_return_error -servername localhost -ign_eof",
        sends: GOODBYE,
        says: &["New, TLSv1.3", "ALPN protocol: h2", "Verify return code: 0", "Compression: NONE", CLOSED],
    },
    Case {
        about: "TLS 1.2, with its secure renegotiation extension (RFC 5746) and extended master secret (RFC 7627)",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -tls1_2 -CAfile CA -verify_return_error -servername localhost -ign_eof",
        sends: GOODBYE,
        says: &[
            "New, TLSv1.2",
            "ALPN protocol: h2",
            "Secure Renegotiation IS supported",
            "Compression: NONE",
            "Extended master secret: yes",
            CLOSED,
        ],
    },
    Case {
        about: "compression is offered, and not taken (RFC 9113 §9.2.1)",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -tls1_2 -comp -ign_eof",
        sends: GOODBYE,
        says: &["Compression: NONE", CLOSED],
    },
    Case {
        about: "`h2` among other protocols",
        server: Kind::Ecdsa,
        flags: "-alpn http/1.1,h2 -ign_eof",
        sends: GOODBYE,
        says: &["ALPN protocol: h2", CLOSED],
    },
    Case {
        about: "other protocols alone",
        server: Kind::Ecdsa,
        flags: "-alpn http/1.1,h3 -ign_eof",
        sends: NOTHING,
        says: &["alert no application protocol"],
    },
    Case {
        about: "no ALPN: the connection is closed in order",
        server: Kind::Ecdsa,
        flags: "-ign_eof",
        sends: NOTHING,
        says: &["No ALPN negotiated", CLOSED],
    },
    Case {
        about: "a server name that is not the certificate's, and OCSP asked for",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -servername elsewhere.test -status -ign_eof",
        sends: GOODBYE,
        says: &["OCSP response: no response sent", CLOSED],
    },
    Case {
        about: "no server name",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -noservername -ign_eof",
        sends: GOODBYE,
        says: &[CLOSED],
    },
    Case {
        about: "TLS 1.1",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -tls1_1 -cipher ALL:@SECLEVEL=0",
        sends: NOTHING,
        says: &["SSL alert number"],
    },
    Case {
        about: "TLS 1.0",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -tls1 -cipher ALL:@SECLEVEL=0",
        sends: NOTHING,
        says: &["SSL alert number"],
    },
    Case {
        about: "TLS 1.3's suite with CCM",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -tls1_3 -ciphersuites TLS_AES_128_CCM_SHA256",
        sends: NOTHING,
        says: &["alert handshake failure"],
    },
    Case {
        about: "TLS 1.3's suite with ChaCha20-Poly1305",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -tls1_3 -ciphersuites TLS_CHACHA20_POLY1305_SHA256 -ign_eof",
        sends: GOODBYE,
        says: &["Cipher is TLS_CHACHA20_POLY1305_SHA256", CLOSED],
    },
    Case {
        about: "a key exchange of finite fields",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -tls1_3 -groups ffdhe2048",
        sends: NOTHING,
        says: &["alert handshake failure"],
    },
    Case {
        about: "a session of TLS 1.3 begins",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -tls1_3 -ign_eof -sess_out SESSION13",
        sends: GOODBYE,
        says: &["New, TLSv1.3", "New Session Ticket arrived", CLOSED],
    },
    Case {
        about: "it is resumed",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -tls1_3 -ign_eof -sess_in SESSION13",
        sends: GOODBYE,
        says: &["Reused, TLSv1.3", "ALPN protocol: h2", CLOSED],
    },
    Case {
        about: "a session of TLS 1.2 begins",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -tls1_2 -ign_eof -sess_out SESSION12",
        sends: GOODBYE,
        says: &["New, TLSv1.2", CLOSED],
    },
    Case {
        about: "it is resumed",
        server: Kind::Ecdsa,
        flags: "-alpn h2 -tls1_2 -ign_eof -sess_in SESSION12",
        sends: GOODBYE,
        says: &["Reused, TLSv1.2", "ALPN protocol: h2", CLOSED],
    },
    Case {
        about: "a client with the certificate that is asked for",
        server: Kind::Mutual,
        flags: "-alpn h2 -cert CERT -key KEY -ign_eof",
        sends: GOODBYE,
        says: &["Acceptable client certificate CA names", CLOSED],
    },
    Case {
        about: "a client without it",
        server: Kind::Mutual,
        flags: "-alpn h2 -tls1_3 -ign_eof",
        sends: NOTHING,
        says: &["alert certificate required"],
    },
    Case {
        about: "a client without it, TLS 1.2",
        server: Kind::Mutual,
        flags: "-alpn h2 -tls1_2 -ign_eof",
        sends: NOTHING,
        says: &["SSL alert number"],
    },
    Case {
        about: "a client with another authority's",
        server: Kind::Mutual,
        flags: "-alpn h2 -cert RSACERT -key RSAKEY -ign_eof",
        sends: NOTHING,
        says: &["SSL alert number"],
    },
];

/// curl once, with a gRPC message as the body.
struct Post {
    about: &'static str,
    server: Kind,
    flags: &'static str,
    /// curl's, of which it is one: 35 is a handshake that failed, 55 and 56 a connection that did when it was written
    /// to and read, 60 a certificate that can't be verified.
    exit_codes: &'static [i32],
}

const POSTS: &[Post] = &[
    Post { about: "a call", server: Kind::Ecdsa, flags: "--http2 --cacert CA", exit_codes: &[0] },
    Post {
        about: "a call over TLS 1.2",
        server: Kind::Ecdsa,
        flags: "--http2 --cacert CA --tls-max 1.2",
        exit_codes: &[0],
    },
    Post {
        about: "a call with a certificate",
        server: Kind::Mutual,
        flags: "--http2 --cacert CA --cert CERT --key KEY",
        exit_codes: &[0],
    },
    Post {
        about: "a call without the certificate",
        server: Kind::Mutual,
        flags: "--http2 --cacert CA",
        exit_codes: &[55, 56],
    },
    Post {
        about: "an authority that nobody told of",
        server: Kind::Ecdsa,
        flags: "--http2 --cacert RSACERT",
        exit_codes: &[60],
    },
    Post { about: "HTTP/1.1", server: Kind::Ecdsa, flags: "--http1.1 --cacert CA", exit_codes: &[35] },
];

/// `SimpleRequest { response_size: 5 }`, and the `SimpleResponse` that answers: a payload with five zeros.
const REQUEST: &[u8] = b"\0\0\0\0\x02\x10\x05";
const RESPONSE: &[u8] = b"\0\0\0\0\x09\x0a\x07\x12\x05\0\0\0\0\0";

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    tools::debian("openssl curl", &["openssl", "curl"], log)?;
    let folder = Folder::make(log)?;
    let ecdsa = folder.serve("server.pem", "server.key", "", log)?;
    let rsa = folder.serve("rsa.pem", "rsa.key", "", log)?;
    let mutual = folder.serve("server.pem", "server.key", "--cacert CA", log)?;
    let port = |kind| if kind == Kind::Mutual { mutual.0 } else { ecdsa.0 };
    let mut wrong = Vec::new();
    for case in CASES {
        let said = folder.s_client(port(case.server), case.flags, case.sends, log)?;
        wrong.extend(missing(case.about, case.says, &said));
    }
    wrong.extend(Folder::renegotiation(ecdsa.0, log)?);
    for post in POSTS {
        wrong.extend(folder.post(port(post.server), post, log)?);
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
    let (cases, posts) = (CASES.len() + 1, POSTS.len());
    let account = format!(
        "openssl: {cases} cases, {suites} suites of TLS 1.2 ({taken} taken, {refused} refused), {hybrid}; curl: {posts}"
    );
    if wrong.is_empty() {
        return Ok(account);
    }
    Err(Failure::failed(format!("{} went wrong ({}); {account}", wrong.len(), wrong.join("; "))))
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
    fn post(&self, port: u16, post: &Post, log: &Log) -> Result<Option<String>, Failure> {
        let (head, body) = (self.file("head"), self.file("body"));
        for path in [&head, &body] {
            fs::write(path, "")?;
        }
        let url = format!("https://localhost:{port}/grpc.testing.BenchmarkService/UnaryCall");
        let job = Job::new("curl")
            .words("--silent --show-error --header content-type:application/grpc --header te:trailers")
            .words(&format!("--resolve localhost:{port}:127.0.0.1 --data-binary"))
            .arg(format!("@{}", self.file("request").display()));
        let job = self.with(job, post.flags).arg("--dump-header").arg(&head).arg("--output").arg(&body);
        let status = job.arg(&url).seconds(20).status(log)?;
        let (head, body) = (fs::read_to_string(head)?, fs::read(body)?);
        let answered = head.starts_with("HTTP/2 200") && head.contains("grpc-status: 0") && body == RESPONSE;
        let is_right =
            status.code().is_some_and(|code| post.exit_codes.contains(&code) && answered == (code == 0));
        Ok((!is_right).then(|| format!("{}: {status}, {head:?} {body:?}", post.about)))
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
