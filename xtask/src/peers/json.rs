//! What a peer serves as JSON, and as gRPC beside it: asked by curl, as "JSON" of `peers/README.md` says.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::built::BuiltPeer;
use crate::job::{Failure, Job, Log};
use crate::server::{Server, free_port};
use crate::{tools, workspace};

/// Moments that an answer may name, in their order, and those that it must.
const MOMENTS: [&str; 4] = ["received", "decoded", "handled", "encoded"];
const MOMENTS_NEEDED: [&str; 2] = ["decoded", "handled"];
/// How often curl is to come back while a server is not there yet.
const UNTIL_IT_LISTENS: &str = "--retry-connrefused --retry 20 --retry-delay 1";

/// Starts the peer with these flags, has it asked for everything, and ends it. How many answers there were.
pub(crate) fn try_out(built: &BuiltPeer, flags: &str, log: &Log) -> Result<usize, Failure> {
    tools::debian("curl", &["curl"], log)?;
    let speaks = speaks(&Job::new(&built.program).words("variants").text(log)?)?;
    let (grpc, json) = (free_port()?, free_port()?);
    let serve = Job::new(&built.program)
        .words(&format!("serve --listen 127.0.0.1:{grpc} --json 127.0.0.1:{json} {flags}"));
    let server = Server::start(&serve, json, log)?;
    let asking = Asking::create(log)?;
    let mut answers = 0;
    for version in &speaks {
        for (path, body) in [("echo-strings", strings()), ("echo-person", person())] {
            for is_timed in [false, true] {
                let answer = asking.json(*version, json, path, body.to_string().as_bytes(), is_timed)?;
                echoed(&answer, &body, is_timed)
                    .map_err(|why| Failure::failed(format!("{path} over {}: {why}", version.name())))?;
                answers += 1;
            }
        }
        for wrong in ["{\"strings\": [\"a\"", "{\"strings\": 3}"] {
            let answer = asking.json(*version, json, "echo-strings", wrong.as_bytes(), false)?;
            if !(400..500).contains(&answer.status) {
                return Err(Failure::failed(format!("`{wrong}` is answered with {}", answer.status)));
            }
            answers += 1;
        }
    }
    asking.grpc(grpc)?;
    let status = server.stop()?;
    if !status.success() {
        return Err(Failure::failed(format!("`{serve}` ended with {status} when it was told to stop")));
    }
    Ok(answers + 1)
}

/// A version of HTTP that a JSON address answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Http1,
    H2,
}

impl Version {
    fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::H2 => "HTTP/2",
        }
    }

    fn flag(self) -> &'static str {
        match self {
            Self::Http1 => "--http1.1",
            Self::H2 => "--http2-prior-knowledge",
        }
    }
}

/// What the line `json` of `peer variants` promises of HTTP.
fn speaks(variants: &str) -> Result<Vec<Version>, Failure> {
    let line = variants.lines().find_map(|line| line.strip_prefix("json "));
    let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    let known = [("http1", Version::Http1), ("h2", Version::H2)];
    let speaks: Vec<Version> =
        known.into_iter().filter(|(word, _)| words.contains(word)).map(|known| known.1).collect();
    if speaks.is_empty() {
        return Err(Failure::failed("`peer variants` says nothing of JSON"));
    }
    Ok(speaks)
}

/// What curl brings back.
struct Answer {
    status: u16,
    /// The lines of its head.
    head: String,
    body: Vec<u8>,
}

/// Where curl finds what it is to send, and leaves what it was sent.
struct Asking<'l> {
    folder: PathBuf,
    log: &'l Log,
}

impl<'l> Asking<'l> {
    fn create(log: &'l Log) -> Result<Self, Failure> {
        let folder = workspace::output().join("peers-json");
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, log })
    }

    fn json(
        &self,
        version: Version,
        port: u16,
        path: &str,
        body: &[u8],
        is_timed: bool,
    ) -> Result<Answer, Failure> {
        let url = format!("http://127.0.0.1:{port}/v1/{path}");
        let answer = self.ask(version, &url, "application/json", body, is_timed)?;
        Ok(answer)
    }

    /// A message of gRPC is answered by the same bytes, and a status of 0 behind them.
    fn grpc(&self, port: u16) -> Result<(), Failure> {
        let url = format!("http://127.0.0.1:{port}/thalweg.lab.v1.Echo/EchoStrings");
        let message = envelope(&strings());
        let answer = self.ask(Version::H2, &url, "application/grpc", &message, true)?;
        let is_ok = answer.head.lines().any(|line| line == "grpc-status: 0");
        if !is_ok || answer.body != message {
            return Err(Failure::failed(format!("gRPC: the message is not echoed: {}", answer.head)));
        }
        moments(&answer.head).map_err(|why| Failure::failed(format!("gRPC: {why}")))
    }

    fn ask(
        &self,
        version: Version,
        url: &str,
        content_type: &str,
        body: &[u8],
        is_timed: bool,
    ) -> Result<Answer, Failure> {
        let [asked, head, answered] = ["asked", "head", "answered"].map(|name| self.folder.join(name));
        fs::write(&asked, body)?;
        fs::write(&answered, b"")?;
        let mut curl = Job::new("curl").words("--silent --show-error --max-time 20").words(UNTIL_IT_LISTENS);
        curl = curl.arg(version.flag()).arg("-H").arg(format!("content-type: {content_type}"));
        curl = curl.arg("-H").arg("te: trailers").arg("--data-binary").arg(format!("@{}", asked.display()));
        if is_timed {
            curl = curl.arg("-H").arg("lab-times: 1");
        }
        curl = curl.arg("-D").arg(&head).arg("-o").arg(&answered);
        let status = curl.words("-w %{http_code}").arg(url).text(self.log)?;
        let status = status.trim().parse().map_err(|_| Failure::failed(format!("{url}: `{status}`")))?;
        let head = fs::read_to_string(&head)?.replace("\r\n", "\n").to_lowercase();
        Ok(Answer { status, head, body: fs::read(Path::new(&answered))? })
    }
}

/// The answer is what was asked, with moments if they were asked for, and without them otherwise.
fn echoed(answer: &Answer, body: &Value, is_timed: bool) -> Result<(), String> {
    let Answer { status, head, body: answered } = answer;
    if *status != 200 {
        return Err(format!("the status is {status}"));
    }
    if !head.contains("\ncontent-type: application/json") {
        return Err(format!("the content type is not application/json: {head}"));
    }
    match serde_json::from_slice::<Value>(answered) {
        Ok(answered) if answered == *body => {}
        Ok(answered) => return Err(format!("{body} is answered with {answered}")),
        Err(error) => return Err(format!("the answer is no JSON: {error}")),
    }
    match is_timed {
        true => moments(head),
        false if head.contains("lab-times") => Err("there are times that nobody asked for".to_owned()),
        false => Ok(()),
    }
}

/// `lab-times: decoded=1 handled=2`, each at least as late as the one before it.
fn moments(head: &str) -> Result<(), String> {
    let line = head.lines().find_map(|line| line.strip_prefix("lab-times: ")).ok_or("there are no times")?;
    let mut names = Vec::new();
    let mut last = (0, 0);
    for word in line.split(' ') {
        let parts = word.split_once('=').and_then(|(name, ns)| {
            let place = MOMENTS.iter().position(|moment| *moment == name)?;
            Some((place + 1, ns.parse::<u64>().ok()?))
        });
        let (place, ns) = parts.ok_or_else(|| format!("`{word}` is no moment"))?;
        if place <= last.0 || ns < last.1 {
            return Err(format!("`{line}` is out of order"));
        }
        last = (place, ns);
        names.push(MOMENTS[place - 1]);
    }
    match MOMENTS_NEEDED.into_iter().find(|moment| !names.contains(moment)) {
        Some(missing) => Err(format!("`{line}` has no `{missing}`")),
        None => Ok(()),
    }
}

/// 500 strings of 20 letters, and one that JSON writes otherwise than Protobuf.
fn strings() -> Value {
    let letters = |n: usize| (0..20).map(|i| char::from(b'a' + ((n + i) % 26) as u8)).collect::<String>();
    let mut strings: Vec<String> = (0..500).map(letters).collect();
    strings.push("\"é\"\n\u{1F30A}".to_owned());
    json!({ "strings": strings })
}

fn person() -> Value {
    json!({
        "name": "Ada", "age": 36, "hobbies": ["chess", "horses", "numbers"],
        "address": { "city": "London", "zipCode": "W1" },
    })
}

/// The strings as a message of gRPC: field 1 again and again, behind a prefix.
fn envelope(strings: &Value) -> Vec<u8> {
    let mut message = Vec::new();
    for string in strings["strings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        // Each is shorter than 128 bytes, so that its length is one byte.
        message.extend([0x0a, string.len() as u8]);
        message.extend(string.as_bytes());
    }
    let mut envelope = vec![0];
    envelope.extend((message.len() as u32).to_be_bytes());
    envelope.extend(message);
    envelope
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_that_a_peer_promises() {
        let check = |variants: &str, expected: &[Version]| {
            assert_eq!(speaks(variants).unwrap_or_default(), expected, "{variants:?}");
        };
        check("server\nclient\njson http1 h2 connect\n", &[Version::Http1, Version::H2]);
        check("server\nclient\njson h2\n", &[Version::H2]);
        check("server json\nclient\n", &[]);
        check("json grpc-web\n", &[]);
    }

    #[test]
    fn moments_stand_in_their_order_and_those_of_the_handler_are_there() {
        let check = |times: &str, is_kept: bool| {
            assert_eq!(moments(&format!("http/2 200\nlab-times: {times}\n")).is_ok(), is_kept, "{times}");
        };
        check("decoded=1 handled=1", true);
        check("received=1 decoded=2 handled=3 encoded=4", true);
        check("decoded=2 handled=1", false);
        check("handled=1 decoded=1", false);
        check("received=1 handled=1", false);
        check("received=1 decoded=1", false);
        check("decoded=1 decoded=1 handled=2", false);
        check("decoded=1 handled=2 gone=3", false);
        check("decoded=1 handled=-2", false);
        assert!(moments("http/2 200\n").is_err());
    }

    #[test]
    fn an_answer_is_what_was_asked() {
        let answer = |status, head: &str, body: &str| Answer {
            status,
            head: format!("http/1.1 {status}\n{head}"),
            body: body.as_bytes().to_vec(),
        };
        let check = |answer: Answer, is_timed: bool, is_kept: bool| {
            assert_eq!(echoed(&answer, &json!({ "strings": ["a"] }), is_timed).is_ok(), is_kept);
        };
        check(answer(200, JSON, "{ \"strings\": [\"a\"] }"), false, true);
        check(answer(200, JSON, "{\"strings\":[\"b\"]}"), false, false);
        check(answer(200, "", "{\"strings\":[\"a\"]}"), false, false);
        check(answer(404, JSON, "{\"strings\":[\"a\"]}"), false, false);
        check(answer(200, JSON, "{\"strings\":[\"a\"]}"), true, false);
        check(answer(200, TIMED, "{\"strings\":[\"a\"]}"), true, true);
        check(answer(200, TIMED, "{\"strings\":[\"a\"]}"), false, false);
    }

    const JSON: &str = "content-type: application/json\n";
    const TIMED: &str = "content-type: application/json\nlab-times: decoded=1 handled=2\n";

    #[test]
    fn a_message_has_its_length_before_it() {
        assert_eq!(envelope(&json!({ "strings": ["ab", ""] })), b"\0\0\0\0\x06\x0a\x02ab\x0a\0");
    }
}
