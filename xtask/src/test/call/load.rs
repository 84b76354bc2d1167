//! A run of `thalweg load`, and what is expected of its result.

use std::process::Output;

use serde_json::Value;

/// What is otherwise than expected: the `exit_code`, calls that end with OK (`ok`), those that do not (`failed`, by
/// status), and messages that come back (`received`).
pub(super) fn fault(load: &Value, output: &Output) -> Option<String> {
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let number = |key: &str| Value::from(load[key].as_u64().unwrap_or(0));
    let failed = load["failed"].as_object().cloned().unwrap_or_default();
    let expected =
        [("ok", number("ok")), ("errors", failed.into()), ("messages_received", number("received"))];
    let others: Vec<String> = expected
        .iter()
        .filter(|(key, expected)| result[key] != *expected)
        .map(|(key, expected)| format!("{key}: {}, not {expected}", result[key]))
        .collect();
    let code = load["exit_code"].as_i64().unwrap_or(0);
    if output.status.code().map(i64::from) == Some(code) && others.is_empty() {
        return None;
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Some(format!("{}, of {code}; {}; {said}", output.status, others.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Output};

    use serde_json::json;

    use super::fault;

    #[test]
    fn calls_statuses_and_messages_are_compared() {
        let load = json!({"exit_code": 1, "ok": 2, "failed": {"ABORTED": 1}, "received": 4});
        let output = |code: i32, stdout: &str| Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: Vec::new(),
        };
        let as_expected = r#"{"ok": 2, "errors": {"ABORTED": 1}, "messages_received": 4}"#;
        assert_eq!(fault(&load, &output(1, as_expected)), None);
        assert!(fault(&load, &output(0, as_expected)).is_some());
        let other = as_expected.replace("ABORTED\": 1", "ABORTED\": 2");
        let fault = fault(&load, &output(1, &other)).unwrap_or_default();
        assert!(fault.contains("errors: {\"ABORTED\":2}, not {\"ABORTED\":1}"), "{fault}");
    }
}
