//! Runs the examples like a newcomer and compares their output with that in their first comment.

use std::fs;
use std::path::PathBuf;

use super::cases::Cases;
use super::rust;
use crate::failure::Result;
use crate::job::Job;
use crate::server::Server;
use crate::workspace;

/// Examples that are not run alone. The clients need another example as server, with its address as argument. The
/// others never end; tests of the package run them.
const CLIENTS: &[(&str, &str)] = &[("routeguide-client", "routeguide-server")];
const IN_TESTS: &[&str] = &["prometheus"];

/// The names in `examples/Cargo.toml`.
pub(super) fn names() -> Result<Vec<String>> {
    let manifest = fs::read_to_string(workspace::root().join("examples/Cargo.toml"))?;
    let targets = manifest.split("[[example]]").skip(1);
    Ok(targets.filter_map(|target| Some(target.split('"').nth(1)?.to_owned())).collect())
}

pub(super) fn check() -> Result<String> {
    let names = names()?;
    let folder = rust::examples(&names)?;
    let program = |name: &str| Job::new(folder.join(name)).seconds(20);
    let mut cases = Cases::default();
    for name in names.iter().filter(|name| documents_its_output(name)) {
        let outcome = match CLIENTS.iter().find(|(client, _)| client == name) {
            None => check_output(name, &program(name)),
            Some((_, server)) => {
                let server = Server::start(|port| program(server).arg(format!("127.0.0.1:{port}")))?;
                let outcome = check_output(name, &program(name).arg(server.address()));
                server.stop()?;
                outcome
            }
        };
        cases.count(name, outcome)?;
    }
    cases.verdict("examples print what they say")
}

fn documents_its_output(name: &str) -> bool {
    !IN_TESTS.contains(&name) && CLIENTS.iter().all(|(_, server)| *server != name)
}

/// Checks that the example exits with 0 and prints the promised output.
fn check_output(name: &str, program: &Job) -> Result<()> {
    let source = fs::read_to_string(source(name))?;
    let expected = documented_output(&source).ok_or_else(|| failed!("{name}: missing expected output"))?;
    let printed = program.text()?;
    ensure!(printed == expected, "{name} printed\n{printed}expected\n{expected}");
    Ok(())
}

fn source(name: &str) -> PathBuf {
    workspace::root().join("examples").join(format!("{name}.rs"))
}

/// The text block in the comment at the start of a program.
fn documented_output(source: &str) -> Option<String> {
    let head = source.lines().map_while(|line| line.strip_prefix("//!"));
    let mut block =
        head.map(|line| line.strip_prefix(' ').unwrap_or(line)).skip_while(|line| *line != "```text");
    block.next()?;
    Some(block.take_while(|line| *line != "```").fold(String::new(), |text, line| text + line + "\n"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{CLIENTS, IN_TESTS, documented_output, documents_its_output, names, source};
    use crate::workspace;

    #[test]
    fn promised_output_is_read_from_the_header() {
        let source =
            "//! An example. It prints:\n//!\n//! ```text\n//! a\n//!\n//!  b\n//! ```\n\nfn main() {}\n";
        assert_eq!(documented_output(source).as_deref(), Some("a\n\n b\n"));
        assert_eq!(documented_output("//! It prints nothing.\n"), None);
    }

    #[test]
    fn every_example_is_listed_and_documents_its_output() {
        let page = fs::read_to_string(workspace::root().join("docs/tutorial.md")).expect("the page");
        let names = names().expect("the manifest");
        for name in &names {
            assert!(page.contains(&format!("(../examples/{name}.rs)")), "docs/tutorial.md lacks {name}");
            let source = fs::read_to_string(source(name)).expect("its source");
            assert!(!documents_its_output(name) || documented_output(&source).is_some(), "{name}");
        }
        let special = CLIENTS.iter().flat_map(|(client, server)| [client, server]).chain(IN_TESTS);
        for name in special {
            assert!(names.iter().any(|known| known == name), "there is no example {name}");
        }
    }
}
