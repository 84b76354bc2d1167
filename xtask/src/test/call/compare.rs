//! Runs of `thalweg compare`: two servers that it starts itself, and measures in turns.

use std::process::Output;

use serde_json::Value;

use super::case::texts;
use super::servers::Kind;
use crate::job::{Failure, Log};

const ROUNDS: usize = 3;
const SETTINGS: &[&str] =
    &["--rounds", "3", "--window", "300ms", "--warmup", "100ms", "--fail-on", "none", "-O", "json"];

/// What `thalweg compare` is told.
pub(super) fn words(comparison: &Value, log: &Log) -> Result<Vec<String>, Failure> {
    let text = |key: &str| comparison[key].as_str().unwrap_or_default();
    let command = |side: &str| Ok::<_, Failure>(Kind::named(text(side))?.job("{port}", log)?.shell());
    let sides = ["--a".to_owned(), command("a")?, "--b".to_owned(), command("b")?];
    let rest = ["--target", text("target")].into_iter().chain(SETTINGS.iter().copied()).chain(["--"]);
    let rest = rest.chain(texts(&comparison["words"]));
    Ok(sides.into_iter().chain(rest.map(str::to_owned)).collect())
}

/// What is otherwise than expected: each round is a pair of windows in which no call failed, and the processor time
/// of both servers is known.
pub(super) fn fault(expected: &Value, output: &Output) -> Option<String> {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let comparison = &report["comparisons"][0];
    let cell = &comparison["cells"][0];
    let measured = |name: &str| {
        let figures = cell["figures"].as_array().into_iter().flatten();
        let mut figures = figures.filter(|figure| figure["figure"] == name);
        figures.any(|figure| {
            let is_positive = |side: &str| figure[side].as_f64().is_some_and(|value| value > 0.0);
            figure["rounds"] == serde_json::json!([ROUNDS, ROUNDS]) && is_positive("a") && is_positive("b")
        })
    };
    let missing =
        ["rate", "p50", "p99", "client-cpu", "server-cpu"].into_iter().filter(|name| !measured(name));
    let mut faults: Vec<String> = missing.map(|name| format!("{name} is not of {ROUNDS} rounds")).collect();
    let values = [
        ("paired", &comparison["paired"], Value::from(true)),
        ("loop", &cell["loop"], expected["loop"].clone()),
        ("failed_share", &cell["failed_share"], serde_json::json!([0.0, 0.0])),
    ];
    for (name, value, expected) in values {
        if *value != expected {
            faults.push(format!("{name}: {value}, not {expected}"));
        }
    }
    if output.status.success() && faults.is_empty() {
        return None;
    }
    let (status, said) = (output.status, String::from_utf8_lossy(&output.stderr));
    Some(format!("{status}; {}; {said}", faults.join(", ")))
}
