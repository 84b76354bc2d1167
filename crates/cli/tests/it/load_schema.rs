//! Checks the documentation of `thalweg.load-run/2` and of its CSV in `docs/load.md`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::support::{Running, load, load_json, outcome, thalweg};

const UNARY: &str = "grpc.testing.TestService/UnaryCall";
const DUPLEX: &str = "grpc.testing.TestService/FullDuplexCall";

/// Returns the quoted words in the first and second columns of the table below `heading`.
fn rows(heading: &str) -> Vec<[Vec<String>; 2]> {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/load.md")).unwrap();
    let (_, behind) = page.split_once(&format!("\n### {heading}\n")).unwrap();
    let lines =
        behind.lines().take_while(|line| !line.starts_with('#')).filter(|line| line.starts_with("| `"));
    let quoted = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    lines
        .map(|line| line.split_once(" | ").unwrap())
        .map(|(left, right)| [quoted(left), quoted(right)])
        .collect()
}

/// Returns the documented fields. `.b` after `a[].x` is `a[].b`. Words in the second column count as fields of the
/// row's object.
fn documented() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for [names, said] in rows("`thalweg.load-run/2`") {
        let (parent, _) = names[0].rsplit_once('.').unwrap_or_default();
        for name in &names {
            let name = if name.starts_with('.') { format!("{parent}{name}") } else { name.clone() };
            all.extend(said.iter().map(|field| format!("{name}.{field}")));
            all.insert(name);
        }
    }
    all
}

/// Collects the fields of a result, with dots for nested ones. Keys of `tags` and `errors` are not fields.
fn fields(value: &Value, path: &str, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(object)
            if path.is_empty() || !["tags", "errors"].iter().any(|name| path.ends_with(name)) =>
        {
            for (name, value) in object {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                fields(value, &path, all);
                all.insert(path);
            }
        }
        Value::Array(array) => {
            all.insert(format!("{path}[]"));
            for value in array {
                fields(value, &format!("{path}[]"), all);
            }
        }
        _ => {}
    }
}

/// Returns results that together have all fields.
fn results(folder: &std::path::Path, address: &str) -> Vec<Value> {
    let file = folder.join("scenario.toml");
    let step = |name: &str| format!("[[flow.step]]\nname = \"{name}\"\ncall = \"{UNARY}\"\n");
    fs::write(&file, format!("[[flow]]\nname = \"both\"\n{}{}", step("one"), step("other"))).unwrap();
    let file = file.display().to_string();
    let scenario = ["--scenario", &file, "--rps", "50", "-n", "20", "--share", "0/2", "--tags", "a=b"];
    let scenario = [&scenario[..], &["--expect", "p99<1h"]].concat();
    let duplex = r#"{"response_parameters": [{"size": 1}]}"#;
    let duplex =
        ["--call", DUPLEX, "-d", duplex, "--messages", "3", "--stream-for", "10s", "-n", "5", "-c", "1"];
    let failed = r#"{"response_status": {"code": 5, "message": "not here"}}"#;
    let failed = ["--call", UNARY, "-d", failed, "-n", "5", "--max-errors", "1"];
    let found = ["--call", UNARY, "--find-max", "p99<1ns", "--rps", "1", "-z", "100ms"];
    let (_, found, _) = load(address, &[&found[..], &["-O", "json"]].concat());
    vec![
        load_json(address, &scenario),
        load_json(address, &duplex),
        load_json(address, &failed),
        serde_json::from_str(&found).unwrap(),
    ]
}

#[test]
fn documentation_lists_exactly_the_result_fields() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let mut there = BTreeSet::new();
    for result in results(folder.path(), &addresses[0]) {
        fields(&result, "", &mut there);
    }
    let documented = documented();
    let is_documented = |path: &str| {
        // A list may stand for its elements. Distributions of steps and intervals have the fields of the run's.
        let like = |from: &str, to: &str| documented.contains(&path.replacen(from, to, 1));
        documented.contains(path)
            || documented.contains(path.trim_end_matches("[]"))
            || documented.contains(&format!("{path}[]"))
            || like("steps[].latency", "latency")
            || like("intervals[].latency_ns", "latency")
            || like("intervals[].reply_ns", "latency")
            || like("intervals[].flows", "flows")
    };
    let missing: Vec<&String> = there.iter().filter(|path| !is_documented(path)).collect();
    assert!(missing.is_empty(), "docs/load.md does not have {missing:?}");
    let names = rows("`thalweg.load-run/2`").into_iter().flat_map(|[names, _]| names);
    let leaf = |name: &str| name.trim_end_matches("[]").rsplit('.').next().unwrap().to_owned();
    let known: BTreeSet<String> = there.iter().map(|path| leaf(path)).collect();
    let stale: Vec<String> = names.filter(|name| !known.contains(&leaf(name))).collect();
    assert!(stale.is_empty(), "no result has {stale:?}, which docs/load.md has");
}

#[test]
fn documentation_lists_all_csv_columns() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let run = &results(folder.path(), &addresses[0])[0];
    fs::write(&file, run.to_string()).unwrap();
    let (code, table, stderr) =
        outcome(thalweg(&["merge", file.to_str().unwrap(), "-O", "csv"]).output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    let documented: Vec<String> = rows("As CSV").into_iter().flat_map(|[names, _]| names).collect();
    assert_eq!(documented.join(","), table.lines().next().unwrap());
}
