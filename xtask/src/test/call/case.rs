//! A run of `thalweg call`, and what is expected of it.

use std::process::Output;

use serde_json::Value;

/// What is otherwise than expected: the `exit_code`, or a part that is not among what it `says` on stdout or stderr.
pub(super) fn fault(case: &Value, output: &Output) -> Option<String> {
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let missing: Vec<_> = texts(&case["says"]).filter(|part| !said.contains(part)).collect();
    let code = case["exit_code"].as_i64().unwrap_or(0);
    if output.status.code().map(i64::from) == Some(code) && missing.is_empty() {
        return None;
    }
    Some(format!("{}, not {code}; missing: {missing:?}\n{said}", output.status))
}

/// The texts of a list.
pub(super) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Output};

    use serde_json::json;

    use super::fault;

    #[test]
    fn both_outputs_and_the_exit_code_count() {
        let case = json!({"exit_code": 67, "says": ["{}", "error: INVALID_ARGUMENT"]});
        let output = |code: i32, stdout: &str| Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: "error: INVALID_ARGUMENT (3)".into(),
        };
        assert_eq!(fault(&case, &output(67, "{}\n")), None);
        assert!(fault(&case, &output(0, "{}\n")).is_some_and(|why| why.contains("not 67")));
        assert!(fault(&case, &output(67, "")).is_some_and(|why| why.contains("missing: [\"{}\"]")));
    }
}
