//! Counts the passed cases of a suite and names the failed ones.

use serde_json::Value;

use crate::failure::{Result, verdict};
use crate::files::{list, text};
use crate::job::Said;
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
    pub(super) fn account(&self, of_what: &str) -> String {
        let account = format!("{} of {} {of_what}", self.all - self.failed.len(), self.all);
        if self.is_well() { account } else { format!("{account}; failed: {}", self.failed.join(", ")) }
    }

    pub(super) fn is_well(&self) -> bool {
        self.all > 0 && self.failed.is_empty()
    }

    pub(super) fn verdict(&self, of_what: &str) -> Result<String> {
        verdict(self.is_well(), self.account(of_what))
    }
}

/// Checks that a program ended with the case's `exit_code` and printed all texts in its `says`.
pub(super) fn is_said(case: &Value, said: &Said) -> Result<()> {
    let code = case["exit_code"].as_i64().unwrap_or(0);
    let missing = said.lacks(list(&case["says"]).iter().map(text));
    ensure!(
        said.status.code().map(i64::from) == Some(code) && missing.is_none(),
        "{}, not {code}; missing: {missing:?}\n{}",
        said.status,
        said.all()
    );
    Ok(())
}

#[cfg(test)]
pub(super) fn said(code: i32, out: &str, err: &str) -> Said {
    use std::os::unix::process::ExitStatusExt;
    let status = std::process::ExitStatus::from_raw(code << 8);
    Said { status, out: out.to_owned(), err: err.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{is_said, said};

    #[test]
    fn both_outputs_and_the_exit_code_count() {
        let case = json!({"exit_code": 67, "says": ["{}", "error: INVALID_ARGUMENT"]});
        let check = |code: i32, out: &str, fault: Option<&str>| {
            let found = is_said(&case, &said(code, out, "error: INVALID_ARGUMENT (3)"));
            let found = found.err().map(|why| why.to_string());
            assert_eq!(found.is_some(), fault.is_some());
            assert!(found.unwrap_or_default().contains(fault.unwrap_or_default()));
        };
        check(67, "{}\n", None);
        check(0, "{}\n", Some("not 67"));
        check(67, "", Some("missing: Some(\"{}\")"));
    }
}
