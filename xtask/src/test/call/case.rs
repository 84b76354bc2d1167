//! A run of `thalweg call`, and what is expected of it.

use std::process::Output;

use super::servers::Kind;

/// One run of `thalweg call`.
pub(super) struct Case {
    pub(super) server: Kind,
    /// Behind the target.
    pub(super) words: &'static [&'static str],
    /// What stdin gives, for `-d @-`.
    pub(super) stdin: &'static str,
    pub(super) exit_code: i32,
    /// What it prints, among other things, on stdout or stderr.
    pub(super) says: &'static [&'static str],
}

/// Nothing on stdin, and it ends with OK.
pub(super) const PLAIN: Case =
    Case { server: Kind::Reflection, words: &[], stdin: "", exit_code: 0, says: &[] };

impl Case {
    /// What is otherwise than expected.
    pub(super) fn fault(&self, output: &Output) -> Option<String> {
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        let missing: Vec<_> = self.says.iter().filter(|part| !said.contains(**part)).collect();
        if output.status.code() == Some(self.exit_code) && missing.is_empty() {
            return None;
        }
        let (status, code) = (output.status, self.exit_code);
        Some(format!("{status}, not {code}; missing: {missing:?}\n{said}"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Output};

    use super::{Case, PLAIN};

    #[test]
    fn both_outputs_and_the_exit_code_count() {
        let case = Case { exit_code: 67, says: &["{}", "error: INVALID_ARGUMENT"], ..PLAIN };
        let output = |code: i32, stdout: &str| Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: "error: INVALID_ARGUMENT (3)".into(),
        };
        assert_eq!(case.fault(&output(67, "{}\n")), None);
        assert!(case.fault(&output(0, "{}\n")).is_some_and(|why| why.contains("not 67")));
        assert!(case.fault(&output(67, "")).is_some_and(|why| why.contains("missing: [\"{}\"]")));
    }
}
