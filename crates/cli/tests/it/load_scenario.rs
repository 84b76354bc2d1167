//! Tests scenarios of `thalweg load`: flows, steps, checks, kept values and CSV rows.

use std::fs;

use serde_json::Value;

use crate::support::{Running, outcome, thalweg};

const PERSON: &str = "thalweg.lab.v1.Echo/EchoPerson";

fn load(words: &[&str]) -> (Option<i32>, String, String) {
    outcome(thalweg(&[&["load"], words].concat()).output().unwrap())
}

fn scenario(address: &str, toml: &str, words: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.toml");
    fs::write(&path, toml).unwrap();
    fs::write(folder.path().join("people.jsonl"), "{\"name\": \"Ada\"}\n{\"name\": \"Bob\"}\n").unwrap();
    load(&[&[address, "--scenario", path.to_str().unwrap()], words].concat())
}

fn step<'r>(run: &'r Value, name: &str) -> &'r Value {
    run["steps"].as_array().unwrap().iter().find(|step| step["step"] == name).unwrap()
}

#[test]
fn flows_follow_weights_and_steps_use_kept_values() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let toml = r#"
        [[flow]]
        name = "sign up"
        weight = 3

        [[flow.step]]
        call = "thalweg.lab.v1.Echo/EchoPerson"
        name = "new"
        data = '{"name": "Ada \"{{.RequestNumber}}\"", "age": {{.RequestNumber}}}'
        check = ["name contains Ada", "age >= 0"]
        keep = { who = "name", years = "age" }
        think = "1ms..2ms"

        [[flow.step]]
        call = "thalweg.lab.v1.Echo/EchoPerson"
        name = "again"
        data = '{"name": "{{.who}}", "age": {{.years}}}'
        metadata = { x-age = "{{.years}}" }
        check = ['name contains "Ada \""']

        [[flow]]
        name = "ask"

        [[flow.step]]
        call = "grpc.testing.TestService.UnaryCall"
        data = '{"response_status": {"code": 5}}'
        check = ["status == NOT_FOUND"]
        timeout = "5s"
    "#;
    let (code, stdout, stderr) = scenario(&addresses[0], toml, &["-n", "400", "-c", "4", "-O", "json"]);
    assert_eq!(code, Some(0), "{stderr}");
    let run: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&run["method"], &run["kind"]), (&"people".into(), &"scenario".into()));
    let count = |name: &str| step(&run, name)["ok"].as_u64().unwrap();
    let (new, again, ask) = (count("new"), count("again"), count("grpc.testing.TestService.UnaryCall"));
    assert_eq!((new + ask, again), (400, new), "-n counts flows");
    assert!((260..340).contains(&new), "three of four are new: {new}");
    assert_eq!((&run["ok"], &run["failed"]), (&(new + again + ask).into(), &0.into()));
    assert_eq!(run["flow"]["count"], new);
    assert!(run["flow"]["min"].as_u64().unwrap() >= 1_000_000, "it was thought for a millisecond");
    assert_eq!(step(&run, "again")["latency"]["count"], again);
    let (code, stdout, _) = scenario(&addresses[0], toml, &["-n", "20", "-c", "1"]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("sign up, new"), "{stdout}");
}

#[test]
fn unexpected_response_fails_and_ends_flow() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let toml = r#"
        name = "ages"
        [[flow]]
        [[flow.step]]
        call = "thalweg.lab.v1.Echo/EchoPerson"
        name = "first"
        data = "@people.jsonl"
        check = ["name == Ada"]
        [[flow.step]]
        call = "thalweg.lab.v1.Echo/EchoPerson"
        name = "second"
    "#;
    let words = ["-n", "20", "-c", "1", "-O", "json", "--max-errors", "1"];
    let (code, stdout, stderr) = scenario(&addresses[0], toml, &words);
    assert_eq!(code, Some(0), "{stderr}");
    let run: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&run["method"], &run["errors"]["CHECK"]), (&"ages".into(), &10.into()));
    assert_eq!((&step(&run, "first")["ok"], &step(&run, "first")["failed"]), (&10.into(), &10.into()));
    assert_eq!(step(&run, "second")["ok"], 10);
    let note = run["notes"][0]["text"].as_str().unwrap();
    assert!(note.contains("CHECK: name == Ada: name is \"Bob\""), "{note}");
}

/// Flows of three calls. From the 41st flow on the second call fails.
const THREE: &str = r#"
    [[flow]]
    [[flow.step]]
    call = "thalweg.lab.v1.Echo/EchoPerson"
    name = "one"
    [[flow.step]]
    call = "thalweg.lab.v1.Echo/EchoPerson"
    name = "two"
    data = '{"age": {{.RequestNumber}}}'
    check = ["age < 40"]
    [[flow.step]]
    call = "thalweg.lab.v1.Echo/EchoPerson"
    name = "three"
"#;

/// Ten of fifty flows fail in the second of three steps.
#[test]
fn schedule_counts_flows_not_calls() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["-n", "50", "--rps", "200", "--max-errors", "1", "--interval", "100ms"];
    let (code, stdout, stderr) = scenario(&addresses[0], THREE, &[&words[..], &["-O", "json"]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let run: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(run["flows"], serde_json::json!({"begun": 50, "ok": 40, "failed": 10}));
    assert_eq!((&run["ok"], &run["failed"]), (&(50 + 40 + 40).into(), &10.into()));
    assert_eq!(run["wait"]["count"], 50, "only the first call of a flow has a time to begin at");
    assert_eq!(run["latency"]["count"], 130);
    let intervals = run["intervals"].as_array().unwrap();
    let flows = |name: &str| intervals.iter().map(|part| part["flows"][name].as_u64().unwrap()).sum::<u64>();
    assert_eq!((flows("begun"), flows("ok"), flows("failed")), (50, 40, 10));
    let (_, text, _) = scenario(&addresses[0], THREE, &words);
    let row =
        |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
    assert!(row("flows").contains(" flows/s of 200 scheduled"), "{text}");
    assert!(!row("rate").contains("scheduled"), "{text}");
    let (_, table, _) = scenario(&addresses[0], THREE, &[&words[..], &["-O", "csv"]].concat());
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert!(rows[0].ends_with(&["flows_begun", "flows_ok", "flows_failed"]), "{table}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{table}");
    let (_, page, _) = scenario(&addresses[0], THREE, &[&words[..], &["-O", "html"]].concat());
    assert!(page.contains("scheduled flows/s"), "what is scheduled are flows");
}

/// All but the first of fifty simultaneous starts are late; they are a third of the calls.
#[test]
fn late_starts_are_a_share_of_flows() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let flow = THREE.replace("age < 40", "age exists");
    let slow = flow.replace("name = \"one\"", "name = \"one\"\nthink = \"5ms\"");
    let words = ["--rps", "50@10s", "-n", "50", "-c", "1", "-O", "json"];
    let (code, stdout, stderr) = scenario(&addresses[0], &slow, &words);
    assert_eq!(code, Some(0), "{stderr}");
    let run: Value = serde_json::from_str(&stdout).unwrap();
    let late = run["late"].as_u64().unwrap();
    assert!(late >= 49, "{late}");
    let note = run["notes"].to_string();
    assert!(
        note.contains(&format!("{late} of 50 flows started more than 1 ms late and 0 did not start")),
        "{note}"
    );
}

/// A server that handles at most 50 calls per second handles 16 flows of three calls.
#[test]
fn search_with_scenario_counts_flows() {
    let (_server, addresses) = Running::serve_with(&["127.0.0.1:0"], &["--work", "20ms", "--threads", "1"]);
    let step =
        |name| format!("[[flow.step]]\ncall = 'grpc.testing.BenchmarkService/UnaryCall'\nname = '{name}'\n");
    let toml = ["[[flow]]\n".to_owned(), step(1), step(2), step(3)].concat();
    let words = ["--find-max", "errors<=0", "--rps", "20", "-z", "1s", "--warmup", "0s", "-c", "4"];
    let (_, stdout, stderr) = scenario(&addresses[0], &toml, &[&words[..], &["-O", "json"]].concat());
    let run: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
    let found = run["search"]["found_per_s"].as_f64().unwrap_or_default();
    assert!(found < 30.0, "{found}: {}", run["search"]);
}

/// The last step's check fails and thus reports the value sent. The same seed draws the same values.
#[test]
fn each_step_draws_own_random_values() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let call = "[[flow.step]]\ncall = 'thalweg.lab.v1.Echo/EchoPerson'\n";
    let sent = |before: &str, template: &str| {
        let step = format!("{call}data = '{{\"name\": \"{template}\"}}'\ncheck = ['name == nobody']\n");
        let toml = ["[[flow]]\n", before, &step].concat();
        let (_, stdout, stderr) = scenario(&addresses[0], &toml, &["-n", "1", "-c", "1", "-O", "json"]);
        let run: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
        let note = run["notes"][0]["text"].as_str().unwrap();
        note.split_once("name is ").unwrap_or_else(|| panic!("{note}")).1.to_owned()
    };
    let before = [call, "name = 'before'\n"].concat();
    for template in ["{{.UUID}}", "{{newUUID}}", "{{randomString 20}}", "{{randomInt 0 9999999999}}"] {
        assert_eq!(sent("", template), sent("", template), "{template}");
        assert_ne!(sent("", template), sent(&before, template), "{template}");
    }
}

#[test]
fn checks_apply_without_scenario() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let base = [&addresses[0], "--call", PERSON, "-n", "10", "-c", "2", "-d", r#"{"name": "Ada"}"#];
    let (code, _, stderr) =
        load(&[&base[..], &["--check", "name.length == 3", "--check", "age < 1"]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let (code, _, stderr) = load(&[&base[..], &["--check", "hobbies.length > 0"]].concat());
    assert_eq!(code, Some(1));
    assert!(stderr.contains("10 of 10 calls failed") && stderr.contains("hobbies.length is 0"), "{stderr}");
    let (code, _, stderr) = load(&[&base[..], &["--check", "status == ABORTED"]].concat());
    assert_eq!(code, Some(1));
    assert!(stderr.contains("expected status ABORTED, got OK"), "{stderr}");
}

#[test]
fn invalid_scenarios_are_explained() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let one = |step: &str| format!("[[flow]]\n[[flow.step]]\n{step}\n");
    let check = |toml: &str, expected: &str| {
        let (code, stdout, stderr) = scenario(&addresses[0], toml, &["-n", "1"]);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains("people.toml: ") || stderr.contains("flow 1"), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    check("", "missing field `flow`");
    check("flow = []", "no flow has a weight above 0");
    check("[[flow]]\nstep = []\n", "flow 1 has no steps");
    check(&one("call = 'a.B/C'\nwait = '1s'"), "unknown field `wait`");
    check(&one("call = 'nothing'"), "step 1 of flow 1: ");
    check(&one("call = 'thalweg.lab.v1.Echo/Nothing'"), "has no method `Nothing`");
    check(&one(&format!("call = '{PERSON}'\ncheck = ['name']")), "invalid check `name`");
    check(&one(&format!("call = '{PERSON}'\nthink = '2s..1s'")), "invalid range");
    check(
        &one(&format!("call = '{PERSON}'\ninput = 'xml'")),
        "step 1 of flow 1: input: unknown format `xml`; use json, csv,",
    );
    check(
        &one(&format!("call = '{PERSON}'\ntimeout = 'soon'")),
        "timeout: expected a time such as 1s, found `soon`",
    );
    check(&one(&format!("call = '{PERSON}'\nmessages = 3")), "--messages needs a method that sends a stream");
    check(
        &one(&format!("call = '{PERSON}'\ndata = '{{\"name\": \"{{{{.who}}}}\"}}'")),
        "`{{.who}}` is unknown",
    );
    check(
        &one(&format!("call = '{PERSON}'\ncheck = ['status == ABORTED']\nkeep = {{ a = 'name' }}")),
        "a call that is expected to fail has no response to check",
    );
    let (code, _, stderr) = load(&[&addresses[0], "--scenario", "/nowhere/a.toml"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("/nowhere/a.toml: failed to read the file"), "{stderr}");
}

#[test]
fn method_placeholders_are_filled() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let data = r#"{"name": "{{.FullyQualifiedName}} {{.MethodName}} {{ .ServiceName }} {{.InputName}} {{.OutputName}}
                            {{.IsClientStreaming}} {{.IsServerStreaming}}"}"#;
    let data = data.replace("\n                           ", "");
    let check = "name == \"thalweg.lab.v1.Echo.EchoPerson EchoPerson Echo Person Person false false\"";
    let base = [&addresses[0], "--call", PERSON, "-n", "10", "-c", "2", "-m", "x-of: {{.MethodName}}"];
    let (code, _, stderr) = load(&[&base[..], &["-d", &data, "--check", check]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let (code, _, stderr) = load(&[&base[..], &["-d", r#"{"name": "{{.Method}}"}"#]].concat());
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("`{{.Method}}` is unknown") && stderr.contains(".FullyQualifiedName"),
        "{stderr}"
    );
}

/// Only the extension `.csv` implies a format.
#[test]
fn step_sets_input_format_of_its_data() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    // Field 2 is the age; 36 and 37 take a byte each.
    fs::write(folder.path().join("two.bin"), b"\x02\x10\x24\x02\x10\x25").unwrap();
    fs::write(folder.path().join("one.bin"), b"\x10\x25").unwrap();
    fs::write(folder.path().join("rows"), "name,age\nAda,36\nBob,37\n").unwrap();
    let check = |input: &str, data: &str, holds: &str| {
        let step = format!("call = '{PERSON}'\n{input}\ndata = '{data}'\ncheck = ['{holds}']\n");
        let path = folder.path().join("people.toml");
        fs::write(&path, format!("[[flow]]\n[[flow.step]]\n{step}")).unwrap();
        let words = [&addresses[0], "--scenario", path.to_str().unwrap(), "-n", "4", "-c", "1", "-O", "json"];
        let (code, stdout, stderr) = load(&words);
        assert_eq!(code, Some(0), "{input}: {stderr}");
        let run: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(run["ok"], 4, "{input}");
    };
    check("input = 'text'", "name: \"Ada\" age: 36", "name == Ada");
    check("input = 'binary'", "@one.bin", "age == 37");
    check("input = 'delimited'", "@two.bin", "age > 35");
    check("input = 'csv'", "@rows", "name.length == 3");
    check("input = 'json'", "{\"age\": 37}", "age == 37");
    check("", "{\"age\": 37}", "age == 37");
}

#[test]
fn csv_rows_are_requests() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.csv");
    let rows = "name,age,hobbies\nAda,36,\"[\"\"chess\"\"]\"\nBob {{.RequestNumber}},,\n";
    fs::write(&path, rows).unwrap();
    let data = format!("@{}", path.display());
    let words =
        [&addresses[0], "--call", PERSON, "-n", "4", "-c", "1", "-d", &data, "--check", "name exists"];
    let (code, stdout, stderr) = load(&[&words[..], &["-O", "json"]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let run: Value = serde_json::from_str(&stdout).unwrap();
    // Ada with age and hobby, twice, and Bob 1 and Bob 3.
    let (ada, bob) = (5 + 2 + 7, 2 + 5);
    assert_eq!(run["bytes_sent"], 2 * (ada + bob));
    fs::write(&path, "surname\nAda\n").unwrap();
    let (code, _, stderr) = load(&words);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("thalweg.lab.v1.Person has no field `surname`"), "{stderr}");
}
