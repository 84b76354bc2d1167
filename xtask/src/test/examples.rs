//! The examples, run as a newcomer runs them. What one prints stands at its head, where its reader finds it, too.

use std::fs;
use std::path::PathBuf;

use super::rust;
use crate::job::{Failure, Job, Log};
use crate::server::{Server, free_port};
use crate::workspace;

/// How an example is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    /// By itself: it is client and server.
    Alone,
    /// Against the server that this other one is. Both take an address.
    Against(&'static str),
    /// By those that are run against it.
    Serves,
    /// By a test of its package: it runs for ever.
    InTests,
}

use Run::{Against, Alone, InTests, Serves};

/// As `examples/Cargo.toml` names them.
const EXAMPLES: &[(&str, Run)] = &[
    ("authentication", Alone),
    ("blocking", Alone),
    ("cancellation", Alone),
    ("compression", Alone),
    ("extensions", Alone),
    ("failover", Alone),
    ("health", Alone),
    ("interceptors", Alone),
    ("json", Alone),
    ("mock", Alone),
    ("mtls", Alone),
    ("notes-buffa", Alone),
    ("prometheus", InTests),
    ("reflection", Alone),
    ("rich-errors", Alone),
    ("routeguide-client", Against("routeguide-server")),
    ("routeguide-server", Serves),
    ("streaming", Alone),
    ("timeout", Alone),
    ("tls", Alone),
    ("tower", Alone),
    ("uds", Alone),
];

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().map(|(name, _)| *name)
}

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let folder = rust::examples(&names().collect::<Vec<_>>(), log)?;
    let program = |name: &str| Job::new(folder.join(name)).seconds(20);
    let mut wrong = Vec::new();
    let mut runs = 0;
    for (name, run) in EXAMPLES {
        let outcome = match run {
            Alone => check_output(name, &program(name), log),
            Against(server) => {
                let port = free_port()?;
                let address = format!("127.0.0.1:{port}");
                let server = Server::start(&program(server).arg(&address), port, log)?;
                let outcome = check_output(name, &program(name).arg(&address), log);
                // Whether it ends is all that matters: nobody handles this signal.
                server.stop()?;
                outcome
            }
            Serves | InTests => continue,
        };
        runs += 1;
        if let Err(failure) = outcome {
            log.line(&failure)?;
            wrong.push(*name);
        }
    }
    if wrong.is_empty() {
        return Ok(format!("{runs} examples print what they say"));
    }
    Err(Failure::failed(format!("{} of {runs} examples: {}", wrong.len(), wrong.join(", "))))
}

/// It ends with 0, and prints what it says that it prints.
fn check_output(name: &str, program: &Job, log: &Log) -> Result<(), Failure> {
    let source = fs::read_to_string(source(name))?;
    let expected = promised(&source)
        .ok_or_else(|| Failure::failed(format!("{name}: it does not say what it prints")))?;
    let printed = program.text(log)?;
    if printed == expected {
        return Ok(());
    }
    Err(Failure::failed(format!("{name} printed\n{printed}and not\n{expected}")))
}

fn source(name: &str) -> PathBuf {
    workspace::root().join("examples").join(format!("{name}.rs"))
}

/// The block of text in the comment that a program begins with.
fn promised(source: &str) -> Option<String> {
    let head = source.lines().map_while(|line| line.strip_prefix("//!"));
    let mut block =
        head.map(|line| line.strip_prefix(' ').unwrap_or(line)).skip_while(|line| *line != "```text");
    block.next()?;
    Some(block.take_while(|line| *line != "```").fold(String::new(), |text, line| text + line + "\n"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Against, Alone, EXAMPLES, Serves, promised, source};
    use crate::workspace;

    #[test]
    fn what_is_printed_is_read_from_the_head() {
        let source =
            "//! An example. It prints:\n//!\n//! ```text\n//! a\n//!\n//!  b\n//! ```\n\nfn main() {}\n";
        assert_eq!(promised(source).as_deref(), Some("a\n\n b\n"));
        assert_eq!(promised("//! It prints nothing.\n"), None);
    }

    #[test]
    fn every_example_is_in_the_list() {
        let manifest =
            fs::read_to_string(workspace::root().join("examples/Cargo.toml")).expect("the manifest");
        let targets = manifest.split("[[example]]").skip(1);
        let name = |target: &str| target.split('"').nth(1).map(str::to_owned);
        let there: Vec<_> = targets.filter_map(name).collect();
        let listed: Vec<_> = EXAMPLES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(there, listed);
        let page = fs::read_to_string(workspace::root().join("docs/examples.md")).expect("the page");
        for name in listed {
            assert!(
                page.contains(&format!("(../examples/{name}.rs)")),
                "docs/examples.md does not have {name}"
            );
        }
    }

    #[test]
    fn every_example_says_what_it_prints() {
        for (name, run) in EXAMPLES {
            let source = fs::read_to_string(source(name)).expect("its source");
            match run {
                Alone => assert!(promised(&source).is_some(), "{name}"),
                Against(server) => {
                    assert!(promised(&source).is_some(), "{name}");
                    assert!(EXAMPLES.contains(&(server, Serves)), "{name}: no server {server}");
                }
                _ => {}
            }
        }
    }
}
