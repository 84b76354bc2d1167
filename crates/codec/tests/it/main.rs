//! Tests the program with the protocol of `peers/README.md`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_thalweg-codec");

/// A running program that waits for requests.
struct Bench {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Bench {
    /// Starts the program, and also returns its first line.
    fn start(selection: &Value) -> (Self, Value) {
        let mut command = Command::new(PROGRAM);
        command.args(["bench", &selection.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut bench = Self { child, stdin, stdout: BufReader::new(stdout) };
        let hello = bench.line();
        (bench, hello)
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn request(&mut self, request: &Value) -> Value {
        writeln!(self.stdin, "{request}").unwrap();
        self.line()
    }
}

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

#[test]
fn bench_lists_codecs_and_answers_requests() {
    let selection = json!({"from": {"seed": 1}, "messages": ["order"], "codecs": ["prost", "serde_json"]});
    let (mut bench, hello) = Bench::start(&selection);
    assert_eq!(hello["schema"], "thalweg.codec-bench/1");
    assert_eq!(
        hello["data"],
        json!([{"name": "order", "about": "a flat record of 13 fields", "messages": 64}])
    );
    let codecs: Vec<&Value> = hello["codecs"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(codecs, ["prost", "serde_json"]);
    let sizes = hello["sizes"].as_array().unwrap();
    let of = |name: &str| sizes.iter().map(|size| size[name].as_f64().unwrap()).collect::<Vec<_>>();
    assert!(of("raw")[0] < of("raw")[1] && of("gzip")[1] < of("raw")[1] && of("zstd")[1] < of("raw")[1]);
    let lines = hello["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 2 * 3);

    let line = &lines[0];
    assert_eq!(*line, json!({"data": "order", "codec": "prost", "operation": "encode"}));
    let mut convert = |conversions: u64| {
        let response =
            bench.request(&json!({"convert": {"line": line, "warm_ups": 50, "conversions": conversions}}));
        response["elapsed_ns"].as_u64().unwrap()
    };
    assert!(convert(100_000) > 10 * convert(100), "more work takes more time");
    assert_eq!(
        bench.request(&json!({"allocations": {"line": line}})),
        json!({"allocations": {"blocks": 0.0, "bytes": 0.0}})
    );
    let unknown = json!({"data": "order", "codec": "xml", "operation": "decode"});
    assert_eq!(
        bench.request(&json!({"allocations": {"line": unknown}})),
        json!({"error": "unknown line xml, decode of order"})
    );
    let error = &bench.request(&json!({"sing": {}}))["error"];
    assert!(error.as_str().unwrap().starts_with("invalid request: unknown variant `sing`"), "{error}");

    let Bench { mut child, stdin, .. } = bench;
    drop(stdin);
    assert!(child.wait().unwrap().success(), "it ends when there are no more requests");
}

#[test]
fn messages_are_written_as_files() {
    let folder = tempfile::tempdir().unwrap();
    let (mut bench, _) = Bench::start(&json!({"from": {"seed": 1}, "messages": ["person-sparse", "order"]}));
    assert_eq!(bench.request(&json!({"messages": {"folder": folder.path()}})), json!({"messages": 2}));
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("messages.txt"), b"person-sparse shapes.Person\norder shapes.Order\n");
    assert_eq!(read("person-sparse.pb"), b"\x11\x0a\x0dpolar penguin\x10\x14");
    // Each of the 64 lines ends with a line feed, so the last part is empty.
    assert_eq!(read("order.jsonl").split(|&byte| byte == b'\n').count(), 64 + 1);
}

#[test]
fn invalid_arguments_fail_with_one_line() {
    let seed = json!({"from": {"seed": 1}, "codecs": ["xml"]}).to_string();
    for (arguments, part) in [
        (&["no-such-command"][..], "unknown command `no-such-command`; use `version`"),
        (&[], "use `version`"),
        (&["bench"], "unknown command `bench`"),
        (&["bench", "{}"], "invalid codec selection: missing field `from`"),
        (&["bench", &seed], "unknown codec `xml`; use one of prost, "),
    ] {
        let output = run(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{arguments:?}: {stderr}");
        assert!(stderr.contains(part), "{part:?} is not in {stderr:?}");
    }
}

#[test]
fn version_lists_all_codecs() {
    let text = String::from_utf8(run(&["version"]).stdout).unwrap();
    assert!(text.starts_with("codecs ") && text.lines().count() == 1, "{text}");
    for codec in ["prost 0", "buffa 0", "serde_json 1", "sonic-rs 0", "pbjson 0", "rmp-serde 1"] {
        assert!(text.contains(codec), "{codec} is not in {text}");
    }
}
