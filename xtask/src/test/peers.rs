//! The peers keep their contract (`peers/README.md`): each one's server against our driver, its driver against our
//! server, all four kinds of call, in each of its variants. What the lab compares is work that both really did.

use std::path::Path;

use serde_json::Value;

use crate::job::{Failure, Job, Log};
use crate::peers::{clients, converters, json_servers, measure, stacks, try_out_json};
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::workspace;

const CALLS: &[&str] = &["unary", "client-stream", "server-stream", "bidi-stream"];
/// Nothing, more than a frame, more than a window.
const SIZES: &[usize] = &[0, 16_385, 1_500_000];

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let thalweg = rust::release_command(log)?;
    let mut accounts = Vec::new();
    for peer in stacks() {
        let built = peer.build(log)?;
        let program = built.program;
        let told = Job::new(&program).words("variants").text(log)?;
        let mut runs = 0;
        for variant in variants(&told, "server")? {
            runs += server(&program, &variant, &thalweg, log)?;
        }
        for variant in variants(&told, "client")? {
            runs += client(&program, &variant, &thalweg, log)?;
        }
        settings(&Job::new(&program).words("settings").text(log)?)?;
        unknown_words_are_refused(&program, log)?;
        accounts.push(format!("{} ({runs} runs)", built.version));
    }
    for peer in clients() {
        // A Debian of its own wants root and mounts, which not every machine gives.
        let built = match peer.build(log) {
            Err(failure @ Failure::Missing(_)) => {
                accounts.push(format!("{} {failure}", peer.name));
                continue;
            }
            built => built?,
        };
        let program = built.program;
        let told = Job::new(&program).words("variants").text(log)?;
        let mut runs = 0;
        for variant in variants(&told, "client")? {
            runs += client(&program, &variant, &thalweg, log)?;
        }
        settings(&Job::new(&program).words("settings").text(log)?)?;
        for words in ["serve --listen 127.0.0.1:0", "load 127.0.0.1:1 --call no-such-call"] {
            unknown_word_is_refused(&program, words, log)?;
        }
        accounts.push(format!("{} ({runs} runs)", built.version));
    }
    for peer in json_servers() {
        let built = peer.build(log)?;
        let told = Job::new(&built.program).words("variants").text(log)?;
        let mut answers = 0;
        for variant in variants(&told, "server")? {
            answers += try_out_json(&built, &variant, log)?;
        }
        settings(&Job::new(&built.program).words("settings").text(log)?)?;
        for words in ["serve --no-such-flag", "serve --listen 127.0.0.1:0", "load 127.0.0.1:1"] {
            unknown_word_is_refused(&built.program, words, log)?;
        }
        accounts.push(format!("{} ({answers} answers)", built.version));
    }
    for peer in converters() {
        let built = peer.build(log)?;
        unknown_word_is_refused(&built.program, "no-such-command", log)?;
        accounts.push(built.version);
    }
    Ok(accounts.join(", "))
}

/// What a peer offers of this side, as the flag that asks for it. One without a choice offers the empty flag.
fn variants(text: &str, side: &str) -> Result<Vec<String>, Failure> {
    let line = text.lines().find_map(|line| line.strip_prefix(side));
    let line = line.ok_or_else(|| Failure::failed(format!("`peer variants` says nothing of the {side}")))?;
    let flags: Vec<_> = line.split_whitespace().map(|name| format!("--variant {name}")).collect();
    Ok(if flags.is_empty() { vec![String::new()] } else { flags })
}

/// What a stack is told: lines of SIDE, NAME, VALUE and WHY, of which the last may be empty.
fn settings(text: &str) -> Result<(), Failure> {
    let is_setting = |line: &str| match line.split('\t').collect::<Vec<_>>().as_slice() {
        [side, name, value, _why] => {
            ["client", "server", "both"].contains(side) && !name.is_empty() && !value.is_empty()
        }
        _ => false,
    };
    match text.lines().find(|line| !is_setting(line)) {
        Some(line) => Err(Failure::failed(format!("`peer settings` says `{line}`"))),
        None if text.is_empty() => Err(Failure::failed("`peer settings` says nothing")),
        None => Ok(()),
    }
}

/// Our driver against the peer's server, over TCP and a Unix socket. How many runs there were.
fn server(program: &Path, variant: &str, thalweg: &Path, log: &Log) -> Result<usize, Failure> {
    let port = free_port()?;
    let socket = workspace::output().join(format!("peer-{port}.sock"));
    let serve = Job::new(program)
        .words(&format!("serve --listen 127.0.0.1:{port} {variant} --listen"))
        .arg(format!("unix:{}", socket.display()));
    let server = Server::start(&serve, port, log)?;
    let targets = [format!("127.0.0.1:{port}"), format!("unix:{}", socket.display())];
    let runs = all_calls(&Job::new(thalweg).words("peer"), "", &targets, log)?;
    let status = server.stop()?;
    if !status.success() {
        return Err(Failure::failed(format!("`{serve}` ended with {status} when it was told to stop")));
    }
    if socket.exists() {
        return Err(Failure::failed(format!("`{serve}` left {} behind", socket.display())));
    }
    Ok(runs)
}

/// The peer's driver against our server.
fn client(program: &Path, variant: &str, thalweg: &Path, log: &Log) -> Result<usize, Failure> {
    let port = free_port()?;
    let socket = workspace::output().join(format!("ours-{port}.sock"));
    let serve = Job::new(thalweg)
        .words(&format!("serve --listen 127.0.0.1:{port} --listen"))
        .arg(format!("unix:{}", socket.display()));
    let server = Server::start(&serve, port, log)?;
    let targets = [format!("127.0.0.1:{port}"), format!("unix:{}", socket.display())];
    let runs = all_calls(&Job::new(program), variant, &targets, log)?;
    announces(program, variant, &targets[0], log)?;
    server.stop()?;
    Ok(runs + 1)
}

/// Each kind of call with each size. The driver verifies what comes back; the number is verified here.
fn all_calls(driver: &Job, variant: &str, targets: &[String], log: &Log) -> Result<usize, Failure> {
    const MESSAGES: u64 = 40;
    let mut runs = 0;
    for target in targets {
        // One size shows what the transport can change.
        let sizes = if target.starts_with("unix:") { &SIZES[1..2] } else { SIZES };
        for call in CALLS {
            for size in sizes {
                let words = format!(
                    "load {target} --call {call} --size {size} -n {MESSAGES} -c 4 --connections 2 --warmup 0s {variant}"
                );
                let job = driver.clone().words(&words).seconds(60);
                let found = measure(job.clone(), log)?;
                if found.messages != MESSAGES {
                    let messages = found.messages;
                    return Err(Failure::failed(format!(
                        "`{job}` counted {messages} messages of {MESSAGES}"
                    )));
                }
                runs += 1;
            }
        }
    }
    Ok(runs)
}

/// With `--announce`: the two lines in their order, then the JSON with everything that the schema asks for.
fn announces(program: &Path, variant: &str, target: &str, log: &Log) -> Result<(), Failure> {
    let job = Job::new(program)
        .words(&format!("load {target} -z 300ms --warmup 100ms -c 8 --announce -O json {variant}"))
        .seconds(60);
    let text = job.text(log)?;
    let failed = |what: &str| Failure::failed(format!("`{job}`: {what}"));
    let rest = text
        .strip_prefix("measuring\nmeasured\n")
        .ok_or_else(|| failed("no `measuring`, `measured` and JSON"))?;
    let value: Value = serde_json::from_str(rest).map_err(|error| failed(&error.to_string()))?;
    let missing: Vec<&str> = KEYS.iter().copied().filter(|key| value.get(key).is_none()).collect();
    match (missing.as_slice(), &value["schema"]) {
        ([], schema) if schema == "thalweg.load/3" => Ok(()),
        ([], schema) => Err(failed(&format!("the schema is {schema}"))),
        _ => Err(failed(&format!("it left out {}", missing.join(", ")))),
    }
}

/// The fields of `LoadResult`.
const KEYS: &[&str] = &[
    "schema",
    "settings",
    "started",
    "ended",
    "duration_ns",
    "drain_ns",
    "closed_loop",
    "rate_per_s",
    "calls",
    "messages",
    "errors",
    "bytes_sent",
    "bytes_received",
    "latency_ns",
    "pace_ns",
    "spikes",
    "histogram",
    "client_cpu",
    "client_cpu_per_call",
    "connections",
    "notes",
];

fn unknown_words_are_refused(program: &Path, log: &Log) -> Result<(), Failure> {
    for words in
        ["serve --no-such-flag", "load 127.0.0.1:1 --call no-such-call", "serve --variant no-such-variant"]
    {
        unknown_word_is_refused(program, words, log)?;
    }
    Ok(())
}

fn unknown_word_is_refused(program: &Path, words: &str, log: &Log) -> Result<(), Failure> {
    let job = Job::new(program).words(words).seconds(20);
    let output = job.output(log)?;
    if output.status.code() != Some(2) || output.stderr.is_empty() {
        return Err(Failure::failed(format!(
            "`{job}` ended with {} instead of exit code 2 and a reason",
            output.status
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{settings, variants};

    #[test]
    fn each_variant_is_a_flag() {
        let told = "server callback cq\nclient\n";
        assert_eq!(variants(told, "server").unwrap(), ["--variant callback", "--variant cq"]);
        assert_eq!(variants(told, "client").unwrap(), [""]);
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
