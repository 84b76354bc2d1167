//! The bookstore, as its README shows it: by grpcurl and curl, and by the web's own clients in a browser.

use std::fs;

use super::rust;
use crate::job::{Failure, Job, Log};
use crate::server::{Server, free_port};
use crate::{tools, workspace};

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let grpcurl = tools::GRPCURL.get(log)?;
    let (browser, clients) = (tools::browser(log)?, tools::web_clients(log)?);
    let program = rust::examples(&["bookstore"], log)?.join("bookstore");
    let port = free_port()?;
    let address = format!("127.0.0.1:{port}");
    let server = Server::start(&Job::new(program).arg(&address), port, log)?;

    let readme = fs::read_to_string(workspace::root().join("examples/bookstore/README.md"))?;
    let mut wrong = 0;
    let shown = shown(&readme);
    // Without a line of progress, and wherever it was installed.
    let programs =
        format!("curl() {{ command curl -sS \"$@\"; }}; grpcurl() {{ '{}' \"$@\"; }}\n", grpcurl.display());
    for Shown { command, output } in &shown {
        let command = command.replace("127.0.0.1:8080", &address);
        let shell = Job::new("bash").arg("-c").arg(format!("{programs}{command}")).seconds(30);
        let printed = shell.text(log)?;
        if printed.trim_end() != output.trim_end() {
            wrong += 1;
            log.line(format_args!("FAIL  {command}\nprinted\n{printed}\nand not\n{output}"))?;
        }
    }
    let cases = Job::new("node").arg("run.mjs").arg(browser).arg(format!("http://{address}"));
    let output = cases.directory(clients).seconds(90).output(log)?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let passed = said.lines().filter(|line| line.starts_with("ok ")).count();
    let failed = said.lines().filter(|line| line.starts_with("FAILED ")).count();
    server.stop()?;
    let account = format!(
        "{} of {} commands of its README; in Chromium {passed} of {} cases",
        shown.len() - wrong,
        shown.len(),
        passed + failed
    );
    let are_all_there = shown.len() >= COMMANDS_MIN && passed >= CASES_MIN;
    let is_well = are_all_there && wrong == 0 && failed == 0 && output.status.success();
    if is_well { Ok(account) } else { Err(Failure::failed(account)) }
}

/// As many as `xtask/suites/web/src/cases.js` has.
const CASES_MIN: usize = 27;

/// As many as `examples/bookstore/README.md` has.
const COMMANDS_MIN: usize = 23;

/// A command of a page, and what it prints.
struct Shown {
    command: String,
    output: String,
}

/// Those in the blocks of `console`.
fn shown(page: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut is_inside = false;
    for line in page.lines() {
        match line.strip_prefix("$ ") {
            _ if line == "```console" => is_inside = true,
            _ if line == "```" => is_inside = false,
            Some(command) if is_inside => {
                all.push(Shown { command: command.to_owned(), output: String::new() });
            }
            None if is_inside => {
                if let Some(last) = all.last_mut() {
                    last.output.push_str(line);
                    last.output.push('\n');
                }
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn commands_are_read_from_a_page() {
        let page = "# A page\n\n```console\n$ a b\n1\n2\n$ c\n```\n\n$ d\n```sh\n$ e\n```\n";
        let read: Vec<_> = shown(page).into_iter().map(|shown| (shown.command, shown.output)).collect();
        assert_eq!(read, [("a b".to_owned(), "1\n2\n".to_owned()), ("c".to_owned(), String::new())]);
    }
}
