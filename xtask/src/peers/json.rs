//! Checks a peer's JSON and gRPC servers with curl, as "JSON" in `peers/README.md` specifies.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::built::BuiltPeer;
use crate::failure::Result;
use crate::files::{list, text};
use crate::job::Job;
use crate::server::{Server, free_port};
use crate::{tools, workspace};

/// Moments that a response may report, in order, and the required ones.
const MOMENTS: [&str; 4] = ["received", "decoded", "handled", "encoded"];
const MOMENTS_NEEDED: [&str; 2] = ["decoded", "handled"];
/// Flags that make curl retry until the server listens.
const UNTIL_IT_LISTENS: &str = "--retry-connrefused --retry 20 --retry-delay 1";

/// Starts the peer with these flags, makes all requests and stops it. Returns the number of responses.
pub(crate) fn try_out(built: &BuiltPeer, flags: &str) -> Result<usize> {
    tools::debian("curl", &["curl"])?;
    let speaks = speaks(&Job::new(&built.program).words("variants").text()?)?;
    let grpc = free_port()?;
    let server = Server::start(|json| {
        let words = format!("serve --listen 127.0.0.1:{grpc} --json 127.0.0.1:{json} {flags}");
        Job::new(&built.program).words(&words)
    })?;
    let asking = Asking { folder: workspace::output().join("peers-json") };
    fs::create_dir_all(&asking.folder)?;
    let mut answers = 0;
    for (version, flag) in speaks {
        let ask = |path: &str, body: &[u8], is_timed: bool| {
            let url = format!("http://{}/v1/{path}", server.address());
            asking.ask(flag, &url, "application/json", body, is_timed)
        };
        for (path, body) in [("echo-strings", strings()), ("echo-person", person())] {
            for is_timed in [false, true] {
                let answer = ask(path, body.to_string().as_bytes(), is_timed)?;
                echoed(&answer, &body, is_timed).map_err(|why| failed!("{path} by {version}: {why}"))?;
                answers += 1;
            }
        }
        for wrong in ["{\"strings\": [\"a\"", "{\"strings\": 3}"] {
            let status = ask("echo-strings", wrong.as_bytes(), false)?.status;
            ensure!((400..500).contains(&status), "`{wrong}` is answered with {status}");
            answers += 1;
        }
    }
    asking.grpc(grpc)?;
    server.stop_well()?;
    Ok(answers + 1)
}

/// HTTP versions that a JSON address may support, each with curl's flag.
const VERSIONS: [(&str, &str); 2] = [("http1", "--http1.1"), ("h2", HTTP2)];
const HTTP2: &str = "--http2-prior-knowledge";

/// HTTP versions in the line `json` of `peer variants`.
fn speaks(variants: &str) -> Result<Vec<(&'static str, &'static str)>> {
    let line = variants.lines().find_map(|line| line.strip_prefix("json ")).unwrap_or_default();
    let is_spoken = |(word, _): &(&str, &str)| line.split_whitespace().any(|spoken| spoken == *word);
    let speaks: Vec<_> = VERSIONS.into_iter().filter(is_spoken).collect();
    ensure!(!speaks.is_empty(), "`peer variants` says nothing of JSON");
    Ok(speaks)
}

/// A response received by curl.
struct Answer {
    status: u16,
    /// The lines of its headers.
    head: String,
    body: Vec<u8>,
}

/// Folder for curl's request and response files.
struct Asking {
    folder: PathBuf,
}

impl Asking {
    /// Checks that a gRPC message is echoed unchanged, with status 0.
    fn grpc(&self, port: u16) -> Result<()> {
        let url = format!("http://127.0.0.1:{port}/thalweg.lab.v1.Echo/EchoStrings");
        let message = envelope(&strings());
        let answer = self.ask(HTTP2, &url, "application/grpc", &message, true)?;
        let is_ok = answer.head.lines().any(|line| line == "grpc-status: 0");
        ensure!((is_ok && answer.body == message), "gRPC: the message is not echoed: {}", answer.head);
        moments(&answer.head).map_err(|why| failed!("gRPC: {why}"))
    }

    fn ask(&self, flag: &str, url: &str, content_type: &str, body: &[u8], is_timed: bool) -> Result<Answer> {
        let [asked, head, answered] = ["asked", "head", "answered"].map(|name| self.folder.join(name));
        fs::write(&asked, body)?;
        fs::write(&answered, b"")?;
        let curl = Job::new("curl").words("--silent --show-error --max-time 20").words(UNTIL_IT_LISTENS);
        let curl = curl.arg(flag).arg("-H").arg(format!("content-type: {content_type}"));
        let curl = curl
            .args(["-H", "te: trailers"])
            .args(is_timed.then_some(["-H", "lab-times: 1"]).into_iter().flatten());
        let curl = curl.arg("--data-binary").arg(format!("@{}", asked.display()));
        let curl = curl.arg("-D").arg(&head).arg("-o").arg(&answered).words("-w %{http_code}").arg(url);
        let status = curl.text()?;
        let status = status.trim().parse().map_err(|_| failed!("{url}: `{status}`"))?;
        let head = fs::read_to_string(&head)?.replace("\r\n", "\n").to_lowercase();
        Ok(Answer { status, head, body: fs::read(answered)? })
    }
}

/// Checks that the response equals the request, and has moments only if they were requested.
fn echoed(Answer { status, head, body: answered }: &Answer, body: &Value, is_timed: bool) -> Result<()> {
    ensure!(*status == 200, "the status is {status}");
    let is_json = head.contains("\ncontent-type: application/json");
    ensure!(is_json, "the content type is not application/json: {head}");
    let answered: Value =
        serde_json::from_slice(answered).map_err(|error| failed!("the answer is no JSON: {error}"))?;
    ensure!(answered == *body, "{body} is answered with {answered}");
    if is_timed {
        return moments(head);
    }
    ensure!(!head.contains("lab-times"), "there are times that nobody asked for");
    Ok(())
}

/// Checks `lab-times: decoded=1 handled=2`: no moment may be earlier than the one before it.
fn moments(head: &str) -> Result<()> {
    let line = head.lines().find_map(|line| line.strip_prefix("lab-times: "));
    let line = line.ok_or_else(|| failed!("there are no times"))?;
    let moment = |word: &str| {
        let (name, ns) = word.split_once('=')?;
        Some((MOMENTS.iter().position(|moment| *moment == name)?, ns.parse::<u64>().ok()?))
    };
    let told: Option<Vec<(usize, u64)>> = line.split(' ').map(moment).collect();
    let told = told.ok_or_else(|| failed!("`{line}` has other words than moments"))?;
    let is_in_order = told.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1);
    ensure!(is_in_order, "`{line}` is out of order");
    let is_told = |needed: &&str| told.iter().any(|(moment, _)| MOMENTS[*moment] == *needed);
    match MOMENTS_NEEDED.iter().find(|needed| !is_told(needed)) {
        Some(missing) => Err(failed!("`{line}` has no `{missing}`")),
        None => Ok(()),
    }
}

/// 500 strings of 20 letters, and one that JSON encodes differently from Protobuf.
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

/// The strings as a gRPC message: a prefix and field 1 repeated.
fn envelope(strings: &Value) -> Vec<u8> {
    let mut message = Vec::new();
    for string in list(&strings["strings"]).iter().map(text) {
        // Each string is shorter than 128 bytes, so its length takes one byte.
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
        let check = |variants: &str, expected: &[(&str, &str)]| {
            assert_eq!(speaks(variants).unwrap_or_default(), expected, "{variants:?}");
        };
        check("server\nclient\njson http1 h2 connect\n", &VERSIONS);
        check("server\nclient\njson h2\n", &VERSIONS[1..]);
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
