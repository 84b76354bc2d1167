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
const TIMESTAMPS: [&str; 4] = ["received", "decoded", "handled", "encoded"];
const REQUIRED_TIMESTAMPS: [&str; 2] = ["decoded", "handled"];
/// Flags that make curl retry until the server listens.
const RETRY_UNTIL_LISTENING: &str = "--retry-connrefused --retry 20 --retry-delay 1";

/// Starts the peer with these flags, makes all requests and stops it. Returns the number of responses.
pub(crate) fn smoke_test(built: &BuiltPeer, flags: &str) -> Result<usize> {
    tools::debian("curl", &["curl"])?;
    let supported_versions = supported_versions(&Job::new(&built.program).words("variants").text()?)?;
    let grpc = free_port()?;
    let server = Server::start(|json| {
        let words = format!("serve --listen 127.0.0.1:{grpc} --json 127.0.0.1:{json} {flags}");
        Job::new(&built.program).words(&words)
    })?;
    let client = JsonClient { folder: workspace::output().join("peers-json") };
    fs::create_dir_all(&client.folder)?;
    let mut response_count = 0;
    for (version, flag) in supported_versions {
        let request = |path: &str, body: &[u8], is_timed: bool| {
            let url = format!("http://{}/v1/{path}", server.address());
            client.request(flag, &url, "application/json", body, is_timed)
        };
        for (path, body) in [("echo-strings", strings()), ("echo-person", person())] {
            for is_timed in [false, true] {
                let response = request(path, body.to_string().as_bytes(), is_timed)?;
                check_echo(&response, &body, is_timed)
                    .map_err(|why| failed!("{path} by {version}: {why}"))?;
                response_count += 1;
            }
        }
        for wrong in ["{\"strings\": [\"a\"", "{\"strings\": 3}"] {
            let status = request("echo-strings", wrong.as_bytes(), false)?.status;
            ensure!((400..500).contains(&status), "expected an error for `{wrong}`, found {status}");
            response_count += 1;
        }
    }
    client.grpc(grpc)?;
    server.stop_gracefully()?;
    Ok(response_count + 1)
}

/// HTTP versions that a JSON address may support, each with curl's flag.
const HTTP_VERSIONS: [(&str, &str); 2] = [("http1", "--http1.1"), ("h2", HTTP2)];
const HTTP2: &str = "--http2-prior-knowledge";

/// HTTP versions in the line `json` of `peer variants`.
fn supported_versions(variants: &str) -> Result<Vec<(&'static str, &'static str)>> {
    let line = variants.lines().find_map(|line| line.strip_prefix("json ")).unwrap_or_default();
    let is_supported = |(word, _): &(&str, &str)| line.split_whitespace().any(|supported| supported == *word);
    let supported_versions: Vec<_> = HTTP_VERSIONS.into_iter().filter(is_supported).collect();
    ensure!(!supported_versions.is_empty(), "`peer variants` lists no JSON versions");
    Ok(supported_versions)
}

/// A response received by curl.
struct JsonResponse {
    status: u16,
    /// The lines of its headers.
    headers: String,
    body: Vec<u8>,
}

/// Folder for curl's request and response files.
struct JsonClient {
    folder: PathBuf,
}

impl JsonClient {
    /// Checks that a gRPC message is echoed unchanged, with status 0.
    fn grpc(&self, port: u16) -> Result<()> {
        let url = format!("http://127.0.0.1:{port}/thalweg.lab.v1.Echo/EchoStrings");
        let message = envelope(&strings());
        let response = self.request(HTTP2, &url, "application/grpc", &message, true)?;
        let is_ok = response.headers.lines().any(|line| line == "grpc-status: 0");
        ensure!((is_ok && response.body == message), "gRPC: the message is not echoed: {}", response.headers);
        check_timestamps(&response.headers).map_err(|why| failed!("gRPC: {why}"))
    }

    fn request(
        &self,
        flag: &str,
        url: &str,
        content_type: &str,
        body: &[u8],
        is_timed: bool,
    ) -> Result<JsonResponse> {
        let [request_body, headers, response_body] =
            ["asked", "head", "answered"].map(|name| self.folder.join(name));
        fs::write(&request_body, body)?;
        fs::write(&response_body, b"")?;
        let curl = Job::new("curl").words("--silent --show-error --max-time 20").words(RETRY_UNTIL_LISTENING);
        let curl = curl.arg(flag).arg("-H").arg(format!("content-type: {content_type}"));
        let curl = curl
            .args(["-H", "te: trailers"])
            .args(is_timed.then_some(["-H", "lab-times: 1"]).into_iter().flatten());
        let curl = curl.arg("--data-binary").arg(format!("@{}", request_body.display()));
        let curl =
            curl.arg("-D").arg(&headers).arg("-o").arg(&response_body).words("-w %{http_code}").arg(url);
        let status = curl.text()?;
        let status = status.trim().parse().map_err(|_| failed!("{url}: `{status}`"))?;
        let headers = fs::read_to_string(&headers)?.replace("\r\n", "\n").to_lowercase();
        Ok(JsonResponse { status, headers, body: fs::read(response_body)? })
    }
}

/// Checks that the response equals the request, and has timestamps only if they were requested.
fn check_echo(
    JsonResponse { status, headers, body: response_body }: &JsonResponse,
    body: &Value,
    is_timed: bool,
) -> Result<()> {
    ensure!(*status == 200, "the status is {status}");
    let is_json = headers.contains("\ncontent-type: application/json");
    ensure!(is_json, "the content type is not application/json: {headers}");
    let response_body: Value = serde_json::from_slice(response_body)
        .map_err(|error| failed!("the response is not JSON: {error}"))?;
    ensure!(response_body == *body, "response to {body} is {response_body}");
    if is_timed {
        return check_timestamps(headers);
    }
    ensure!(!headers.contains("lab-times"), "unexpected timestamps: none were requested");
    Ok(())
}

/// Checks `lab-times: decoded=1 handled=2`: no moment may be earlier than the one before it.
fn check_timestamps(headers: &str) -> Result<()> {
    let line = headers.lines().find_map(|line| line.strip_prefix("lab-times: "));
    let line = line.ok_or_else(|| failed!("missing timestamps"))?;
    let timestamp = |word: &str| {
        let (name, ns) = word.split_once('=')?;
        Some((TIMESTAMPS.iter().position(|timestamp| *timestamp == name)?, ns.parse::<u64>().ok()?))
    };
    let timestamps: Option<Vec<(usize, u64)>> = line.split(' ').map(timestamp).collect();
    let timestamps = timestamps.ok_or_else(|| failed!("`{line}` has unknown timestamps"))?;
    let is_in_order = timestamps.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1);
    ensure!(is_in_order, "`{line}` is out of order");
    let is_present =
        |needed: &&str| timestamps.iter().any(|(timestamp, _)| TIMESTAMPS[*timestamp] == *needed);
    match REQUIRED_TIMESTAMPS.iter().find(|needed| !is_present(needed)) {
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
    fn versions_are_read_from_variants() {
        let check = |variants: &str, expected: &[(&str, &str)]| {
            assert_eq!(supported_versions(variants).unwrap_or_default(), expected, "{variants:?}");
        };
        check("server\nclient\njson http1 h2 connect\n", &HTTP_VERSIONS);
        check("server\nclient\njson h2\n", &HTTP_VERSIONS[1..]);
        check("server json\nclient\n", &[]);
        check("json grpc-web\n", &[]);
    }

    #[test]
    fn timestamps_are_ordered_and_required_ones_present() {
        let check = |times: &str, is_accepted: bool| {
            assert_eq!(
                check_timestamps(&format!("http/2 200\nlab-times: {times}\n")).is_ok(),
                is_accepted,
                "{times}"
            );
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
        assert!(check_timestamps("http/2 200\n").is_err());
    }

    #[test]
    fn response_must_equal_the_request() {
        let response = |status, headers: &str, body: &str| JsonResponse {
            status,
            headers: format!("http/1.1 {status}\n{headers}"),
            body: body.as_bytes().to_vec(),
        };
        let check = |response: JsonResponse, is_timed: bool, is_accepted: bool| {
            assert_eq!(check_echo(&response, &json!({ "strings": ["a"] }), is_timed).is_ok(), is_accepted);
        };
        check(response(200, JSON, "{ \"strings\": [\"a\"] }"), false, true);
        check(response(200, JSON, "{\"strings\":[\"b\"]}"), false, false);
        check(response(200, "", "{\"strings\":[\"a\"]}"), false, false);
        check(response(404, JSON, "{\"strings\":[\"a\"]}"), false, false);
        check(response(200, JSON, "{\"strings\":[\"a\"]}"), true, false);
        check(response(200, TIMED, "{\"strings\":[\"a\"]}"), true, true);
        check(response(200, TIMED, "{\"strings\":[\"a\"]}"), false, false);
    }

    const JSON: &str = "content-type: application/json\n";
    const TIMED: &str = "content-type: application/json\nlab-times: decoded=1 handled=2\n";

    #[test]
    fn envelope_starts_with_the_length() {
        assert_eq!(envelope(&json!({ "strings": ["ab", ""] })), b"\0\0\0\0\x06\x0a\x02ab\x0a\0");
    }
}
