//! Counts the passed cases of a suite and names the failed ones.

use serde_json::Value;

use crate::failure::{Result, verdict};
use crate::files::{list, text};
use crate::job::CapturedOutput;
use crate::log;

/// Counts cases. A failed case is logged and does not stop the others.
#[derive(Default)]
pub(super) struct Cases {
    all: usize,
    failed: Vec<String>,
}

impl Cases {
    pub(super) fn count(&mut self, name: &str, outcome: Result<()>) -> Result<()> {
        self.all += 1;
        let Err(why) = outcome else { return Ok(()) };
        self.failed.push(name.to_owned());
        log::line(format_args!("FAIL  {name}: {why}"))
    }

    /// Summary like `3 of 4 examples; failed: d`.
    pub(super) fn summary(&self, unit: &str) -> String {
        let summary = format!("{} of {} {unit}", self.all - self.failed.len(), self.all);
        if self.all_passed() { summary } else { format!("{summary}; failed: {}", self.failed.join(", ")) }
    }

    pub(super) fn all_passed(&self) -> bool {
        self.all > 0 && self.failed.is_empty()
    }

    pub(super) fn verdict(&self, unit: &str) -> Result<String> {
        verdict(self.all_passed(), self.summary(unit))
    }
}

/// Checks that a program ended with the case's `exit_code` and printed all texts in its `says`.
pub(super) fn check_output(case: &Value, captured: &CapturedOutput) -> Result<()> {
    let code = case["exit_code"].as_i64().unwrap_or(0);
    let missing = captured.first_missing(list(&case["says"]).iter().map(text));
    ensure!(
        captured.status.code().map(i64::from) == Some(code) && missing.is_none(),
        "{}, not {code}; missing: {missing:?}\n{}",
        captured.status,
        captured.all()
    );
    Ok(())
}

#[cfg(test)]
pub(super) fn captured(code: i32, out: &str, err: &str) -> CapturedOutput {
    use std::os::unix::process::ExitStatusExt;
    let status = std::process::ExitStatus::from_raw(code << 8);
    CapturedOutput { status, out: out.to_owned(), err: err.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{captured, check_output};

    #[test]
    fn outputs_and_exit_code_are_checked() {
        let case = json!({"exit_code": 67, "says": ["{}", "error: INVALID_ARGUMENT"]});
        let check = |code: i32, out: &str, fault: Option<&str>| {
            let error = check_output(&case, &captured(code, out, "error: INVALID_ARGUMENT (3)"));
            let error = error.err().map(|why| why.to_string());
            assert_eq!(error.is_some(), fault.is_some());
            assert!(error.unwrap_or_default().contains(fault.unwrap_or_default()));
        };
        check(67, "{}\n", None);
        check(0, "{}\n", Some("not 67"));
        check(67, "", Some("missing: Some(\"{}\")"));
    }
}
