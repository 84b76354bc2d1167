//! A run of `thalweg load`, and what is expected of its result.

use std::process::Output;

use serde_json::Value;

use super::servers::Kind;

/// One run of `thalweg load`.
pub(super) struct Load {
    pub(super) server: Kind,
    /// Behind the target.
    pub(super) words: &'static [&'static str],
    pub(super) exit_code: i32,
    /// Calls that end with OK.
    pub(super) ok: u64,
    /// Calls that do not, all with one status.
    pub(super) failed: Option<(&'static str, u64)>,
    /// Messages that come back in all.
    pub(super) received: u64,
}

/// No call fails.
pub(super) const FINE: Load =
    Load { server: Kind::Reflection, words: &[], exit_code: 0, ok: 0, failed: None, received: 0 };

impl Load {
    /// What is otherwise than expected.
    pub(super) fn fault(&self, output: &Output) -> Option<String> {
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let errors = self.failed.map(|(status, calls)| (status.to_owned(), calls.into())).into_iter();
        let expected = [
            ("ok", self.ok.into()),
            ("errors", Value::Object(errors.collect())),
            ("messages_received", self.received.into()),
        ];
        let others: Vec<String> = expected
            .iter()
            .filter(|(key, expected)| result[key] != *expected)
            .map(|(key, expected)| format!("{key}: {}, not {expected}", result[key]))
            .collect();
        if output.status.code() == Some(self.exit_code) && others.is_empty() {
            return None;
        }
        let (status, code, said) = (output.status, self.exit_code, String::from_utf8_lossy(&output.stderr));
        Some(format!("{status}, of {code}; {}; {said}", others.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Output};

    use super::{FINE, Load};

    #[test]
    fn calls_statuses_and_messages_are_compared() {
        let load = Load { exit_code: 1, ok: 2, failed: Some(("ABORTED", 1)), received: 4, ..FINE };
        let output = |code: i32, stdout: &str| Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: Vec::new(),
        };
        let as_expected = r#"{"ok": 2, "errors": {"ABORTED": 1}, "messages_received": 4}"#;
        assert_eq!(load.fault(&output(1, as_expected)), None);
        assert!(load.fault(&output(0, as_expected)).is_some());
        let other = as_expected.replace("ABORTED\": 1", "ABORTED\": 2");
        let fault = load.fault(&output(1, &other)).unwrap_or_default();
        assert!(fault.contains("errors: {\"ABORTED\":2}, not {\"ABORTED\":1}"), "{fault}");
    }
}
