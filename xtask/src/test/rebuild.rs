//! What is built already is not built again: a build script that names its own output, or a file that is never written,
//! costs a minute with each command otherwise.

use serde_json::Value;

use super::rust;
use crate::job::{Failure, Log};

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let mut units = 0;
    for build in [rust::tests_built(), rust::thalweg_built()] {
        build.run(log)?;
        let again = build.words("--message-format json").quiet_text(log)?;
        let artifacts = artifacts(&again);
        let compiled: Vec<&str> =
            artifacts.iter().filter(|(_, fresh)| !fresh).map(|(id, _)| id.as_str()).collect();
        if !compiled.is_empty() {
            let compiled = compiled.join(", ");
            return Err(Failure::failed(format!(
                "a second build compiled {compiled} (`CARGO_LOG=cargo::core::compiler::fingerprint=info` says why)"
            )));
        }
        units += artifacts.len();
    }
    match units {
        0 => Err(Failure::failed("cargo named nothing that was built")),
        _ => Ok(format!("of {units} units a second build compiles none")),
    }
}

/// What cargo says of each unit: its package, and whether it was there already.
fn artifacts(messages: &str) -> Vec<(String, bool)> {
    let read = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let id = message["package_id"].as_str()?.to_owned();
        (message["reason"] == "compiler-artifact").then(|| (id, message["fresh"] == true))
    };
    messages.lines().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::artifacts;

    #[test]
    fn units_that_were_compiled_are_found() {
        let messages = "{\"reason\":\"compiler-artifact\",\"package_id\":\"a\",\"fresh\":true}\n\
                        {\"reason\":\"build-script-executed\",\"package_id\":\"b\"}\n\
                        {\"reason\":\"compiler-artifact\",\"package_id\":\"c\",\"fresh\":false}\n";
        assert_eq!(artifacts(messages), [("a".to_owned(), true), ("c".to_owned(), false)]);
    }
}
