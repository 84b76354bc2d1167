//! The build for other steps, and a check that nothing is built twice. A build script that depends on its own output,
//! or on a file that is never written, would otherwise cost a minute with each command.

use std::fs;

use serde_json::Value;

use super::{examples, rust};
use crate::failure::Result;
use crate::job::Job;

/// Examples run by steps and tests, in addition to those of `examples`.
const EXAMPLES: &str = "blocking_client bookstore chat-client chat-server compressed conformance connect_client \
                        connect_server decisions descriptor_set dropped interop_client openapi";

/// Builds everything that later steps run: tests, programs and examples.
pub(super) fn build() -> Result<String> {
    rust::tests_built().run()?;
    examples_built()?.run()?;
    Ok("compiled".to_owned())
}

/// Runs clippy with the lints of the manifest. `incompatible_msrv`, on by default, checks our own code against
/// `rust-version` without a second toolchain.
pub(super) fn lints() -> Result<String> {
    rust::component("cargo-clippy", "clippy")?;
    if std::env::var_os(rust::IS_BUILT).is_none() {
        let all = Job::cargo("clippy --workspace --all-targets --no-deps --features").arg(rust::FEATURES);
        all.words("-- -D warnings").builds(30).run()?;
        return Ok("no warnings".to_owned());
    }
    // The build ran clippy on the workspace: cargo repeats the warnings of fresh crates.
    for build in [rust::tests_built(), examples_built()?] {
        let output = build.output()?;
        let captured = output.err;
        let warned: Vec<&str> = captured.lines().filter_map(package_with_warnings).collect();
        if !warned.is_empty() || !output.status.success() {
            bail!("clippy has warnings for {}", warned.join(", "));
        }
    }
    Ok("no warnings".to_owned())
}

/// The `x` in cargo's line ``warning: `x` (lib) generated 1 warning``.
fn package_with_warnings(line: &str) -> Option<&str> {
    let (package, _) = line.strip_prefix("warning: `")?.split_once(" generated ")?;
    package.split('`').next()
}

/// Builds the examples that steps run. `cargo test --example` would build a test of each.
fn examples_built() -> Result<Job> {
    let build = rust::workspace_cargo("build --workspace --features").arg(rust::FEATURES).builds(30);
    let names = EXAMPLES.split(' ').map(str::to_owned).chain(examples::names()?);
    Ok(names.fold(build, |build, name| build.arg("--example").arg(name)))
}

/// Checks the workspace with its tests and examples.
pub(super) fn check() -> Result<String> {
    let tests = check_rebuild(rust::tests_built())?;
    Ok(format!("tests: {tests}; examples: {}", check_rebuild(examples_built()?)?))
}

/// Checks the command in release mode.
pub(super) fn release() -> Result<String> {
    let size = fs::metadata(rust::release_command()?)?.len();
    Ok(format!("{:.1} MB; {}", size as f64 / 1e6, check_rebuild(rust::release_built())?))
}

fn check_rebuild(build: Job) -> Result<String> {
    build.run()?;
    let artifacts = artifacts(&build.words("--message-format json").quiet_text()?);
    let compiled: Vec<&str> =
        artifacts.iter().filter(|(_, fresh)| !fresh).map(|(id, _)| id.as_str()).collect();
    if !compiled.is_empty() {
        let compiled = compiled.join(", ");
        bail!("a second build compiled {compiled}; see `CARGO_LOG=cargo::core::compiler::fingerprint=info`");
    }
    match artifacts.len() {
        0 => Err(failed!("cargo reported no built units")),
        units => Ok(format!("a second build compiles none of {units} units")),
    }
}

/// Parses cargo's message for each unit: its package, and whether it was fresh.
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
    use std::fs;

    use super::{EXAMPLES, artifacts, package_with_warnings};
    use crate::workspace;

    #[test]
    fn packages_with_warnings_are_named() {
        let captured =
            ["warning: unused variable: `x`", "warning: `a` (lib test) generated 2 warnings (1 duplicate)"];
        assert_eq!(captured.into_iter().filter_map(package_with_warnings).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn compiled_units_are_found() {
        let messages = "{\"reason\":\"compiler-artifact\",\"package_id\":\"a\",\"fresh\":true}\n\
                        {\"reason\":\"build-script-executed\",\"package_id\":\"b\"}\n\
                        {\"reason\":\"compiler-artifact\",\"package_id\":\"c\",\"fresh\":false}\n";
        assert_eq!(artifacts(messages), [("a".to_owned(), true), ("c".to_owned(), false)]);
    }

    /// In CI a step finds the examples that the step `build` made, and no others.
    #[test]
    fn examples_of_steps_are_built() {
        // In two parts, for this file is one of those read.
        let call = ["rust::", "example"].concat();
        let mut named = 0;
        for file in fs::read_dir(workspace::root().join("xtask/src/test")).unwrap() {
            let path = file.unwrap().path();
            let Ok(text) = fs::read_to_string(&path) else { continue };
            for part in text.split(&call).skip(1) {
                let Some(name) = part.trim_start_matches(['s', '(', '&', '[']).strip_prefix('"') else {
                    continue;
                };
                let name = name.split('"').next().unwrap();
                assert!(EXAMPLES.split_whitespace().any(|built| built == name), "{}: {name}", path.display());
                named += 1;
            }
        }
        assert!(named > 5, "{named} examples");
    }
}
