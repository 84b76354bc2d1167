//! The peers fulfil their contract (`peers/README.md`). Each server runs with our driver and each driver with our
//! server, with all four kinds of call, in each variant. So the lab compares work that both really did.

use std::path::Path;

use serde_json::Value;

use super::rust;
use crate::failure::{Failure, Result};
use crate::job::Job;
use crate::peers::{BuiltPeer, Contract, PEERS, Peer, check_json_peer, measure};
use crate::server::Server;
use crate::workspace;

const CALLS: &[&str] = &["unary", "client-stream", "server-stream", "bidi-stream"];
/// Empty, larger than a frame, larger than a window.
const SIZES: &[usize] = &[0, 16_385, 1_500_000];

/// Words that a peer must refuse: invalid ones for servers and clients, and those for roles that it lacks.
const BAD_SERVER_WORDS: &[&str] = &["serve --no-such-flag"];
const BAD_STACK_WORDS: &[&str] = &["serve --variant no-such-variant"];
const BAD_CLIENT_WORDS: &[&str] = &["load 127.0.0.1:1 --call no-such-call"];
const NO_SERVER: &[&str] = &["serve --listen 127.0.0.1:0"];
const NO_CLIENT: &[&str] = &["load 127.0.0.1:1"];
const NO_STACK: &[&str] = &["no-such-command"];

pub(super) fn check() -> Result<String> {
    let thalweg = rust::release_command()?;
    let mut summaries = Vec::new();
    for peer in PEERS {
        summaries.push(match (peer.build(), peer.contract) {
            (Ok(built), _) => check_peer(*peer, &built, &thalweg)?,
            // A separate Debian needs root and mounts, which not every machine provides.
            (Err(failure @ Failure::Missing(_)), Contract::Drives { .. }) => {
                format!("{} {failure}", peer.name)
            }
            (Err(failure), _) => return Err(failure),
        });
    }
    Ok(summaries.join(", "))
}

/// Tests everything that a peer offers and returns its version and the number of runs.
fn check_peer(peer: Peer, built: &BuiltPeer, thalweg: &Path) -> Result<String> {
    let (has_server, has_client, refused) = match peer.contract {
        Contract::Calls => (true, true, [BAD_SERVER_WORDS, BAD_CLIENT_WORDS, BAD_STACK_WORDS]),
        Contract::Drives { .. } => (false, true, [NO_SERVER, BAD_CLIENT_WORDS, &[]]),
        Contract::Json => (true, false, [BAD_SERVER_WORDS, NO_SERVER, NO_CLIENT]),
        Contract::Converts => (false, false, [NO_STACK, &[], &[]]),
    };
    let output_of = |what: &str| Job::new(&built.program).words(what).text();
    let mut runs = 0;
    if has_server {
        for variant in variants(&output_of("variants")?, "server")? {
            runs += match peer.contract {
                Contract::Json => check_json_peer(built, &variant)?,
                _ => server(&built.program, &variant, thalweg)?,
            };
        }
    }
    if has_client {
        for variant in variants(&output_of("variants")?, "client")? {
            runs += client(&built.program, &variant, thalweg)?;
        }
    }
    if has_server || has_client {
        settings(&output_of("settings")?)?;
    }
    for words in refused.concat() {
        check_refusal(&Job::new(&built.program).words(words).seconds(20))?;
    }
    Ok(format!("{} ({runs} runs)", built.version))
}

/// Flags for the variants that a peer offers on this side; the empty flag if there is no choice.
fn variants(text: &str, side: &str) -> Result<Vec<String>> {
    let line = text.lines().find_map(|line| line.strip_prefix(side));
    let line = line.ok_or_else(|| failed!("`peer variants` has no line of the {side}"))?;
    let flags: Vec<_> = line.split_whitespace().map(|name| format!("--variant {name}")).collect();
    Ok(if flags.is_empty() { vec![String::new()] } else { flags })
}

/// Checks a stack's settings: lines of SIDE, NAME, VALUE and WHY, where WHY may be empty, and maybe a variant.
fn settings(text: &str) -> Result<()> {
    let is_setting = |line: &str| match line.split('\t').collect::<Vec<_>>().as_slice() {
        [side, name, value, _why] | [side, name, value, _why, _] => {
            ["client", "server", "both"].contains(side) && !name.is_empty() && !value.is_empty()
        }
        _ => false,
    };
    ensure!(!text.is_empty(), "`peer settings` printed nothing");
    match text.lines().find(|line| !is_setting(line)) {
        Some(line) => Err(failed!("invalid line of `peer settings`: `{line}`")),
        None => Ok(()),
    }
}

/// Runs our driver against the peer's server, over TCP and a Unix socket. Returns the number of runs.
fn server(program: &Path, variant: &str, thalweg: &Path) -> Result<usize> {
    let (server, socket) = serve(Job::new(program).words(&format!("serve {variant}")))?;
    let runs = all_calls(&Job::new(thalweg).words("peer"), "", &server, &socket)?;
    server.stop_gracefully()?;
    ensure!(!Path::new(&socket).exists(), "{} left {socket} behind", program.display());
    Ok(runs)
}

/// Runs the peer's driver against our server.
fn client(program: &Path, variant: &str, thalweg: &Path) -> Result<usize> {
    let (server, socket) = serve(Job::new(thalweg).words("serve"))?;
    let runs = all_calls(&Job::new(program), variant, &server, &socket)?;
    check_announcement(program, variant, &server.address())?;
    server.stop()?;
    Ok(runs + 1)
}

/// Starts a server that listens on a port and on a Unix socket.
fn serve(job: Job) -> Result<(Server, String)> {
    let socket = |port: u16| workspace::output().join(format!("peer-{port}.sock")).display().to_string();
    let words = |port: u16| format!("--listen 127.0.0.1:{port} --listen unix:{}", socket(port));
    let server = Server::start(|port| job.words(&words(port)))?;
    let socket = socket(server.port());
    Ok((server, socket))
}

/// Makes each kind of call with each size. The driver verifies the responses; this checks their number.
fn all_calls(driver: &Job, variant: &str, server: &Server, socket: &str) -> Result<usize> {
    const MESSAGES: u64 = 40;
    let mut runs = 0;
    // One size is enough to show differences between transports.
    for (target, sizes) in [(server.address(), SIZES), (format!("unix:{socket}"), &SIZES[1..2])] {
        for (call, size) in CALLS.iter().flat_map(|call| sizes.iter().map(move |size| (call, size))) {
            let words = format!(
                "load {target} --call {call} --size {size} -n {MESSAGES} -c 4 --connections 2 --warmup 0s {variant}"
            );
            let job = driver.clone().words(&words).seconds(60);
            let messages = measure(job.clone())?.messages;
            ensure!(messages == MESSAGES, "`{job}` counted {messages} of {MESSAGES} messages");
            runs += 1;
        }
    }
    Ok(runs)
}

/// Checks `--announce`: the two lines in order, then the JSON with all keys of the schema.
fn check_announcement(program: &Path, variant: &str, target: &str) -> Result<()> {
    let words = format!("load {target} -z 300ms --warmup 100ms -c 8 --announce -O json {variant}");
    let job = Job::new(program).words(&words).seconds(60);
    let text = job.text()?;
    let rest = text.strip_prefix("measuring\nmeasured\n");
    let rest = rest.ok_or_else(|| failed!("`{job}`: expected `measuring`, `measured` and JSON"))?;
    let value: Value = serde_json::from_str(rest).map_err(|error| failed!("`{job}`: {error}"))?;
    let missing: Vec<&str> = KEYS.split(' ').filter(|key| value.get(key).is_none()).collect();
    ensure!(missing.is_empty(), "`{job}`: missing {}", missing.join(", "));
    ensure!(value["schema"] == "thalweg.load/3", "`{job}`: the schema is {}", value["schema"]);
    Ok(())
}

/// The fields of `LoadResult`.
const KEYS: &str = "schema settings started ended duration_ns drain_ns closed_loop rate_per_s calls messages errors \
                    bytes_sent bytes_received latency_ns pace_ns spikes histogram client_cpu client_cpu_per_call \
                    connections notes";

fn check_refusal(job: &Job) -> Result<()> {
    let captured = job.output()?;
    let is_reported = captured.status.code() == Some(2) && !captured.err.is_empty();
    ensure!(is_reported, "`{job}` ended with {} instead of exit code 2 and a reason", captured.status);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{settings, variants};

    #[test]
    fn variants_become_flags() {
        let output = "server callback cq\nclient\n";
        assert_eq!(variants(output, "server").unwrap(), ["--variant callback", "--variant cq"]);
        assert_eq!(variants(output, "client").unwrap(), [""]);
        assert!(variants("client\n", "server").is_err());
    }

    #[test]
    fn settings_have_four_fields() {
        let check = |text: &str, is_kept: bool| assert_eq!(settings(text).is_ok(), is_kept, "{text:?}");
        check("both\tframe (max_frame_size)\t1 MiB\tfaster\nserver\tthreads\t2\t\n", true);
        check("both\tframe (max_frame_size)\t1 MiB\n", false);
        check("us\tframe\t1 MiB\t\n", false);
        check("both\t\t1 MiB\t\n", false);
        check("", false);
    }
}
