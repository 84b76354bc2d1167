//! The bookstore as in its README: with grpcurl and curl, and with web clients in a browser.

use std::fs;

use super::cases::Cases;
use super::pages::{ShownCommand, code_blocks, shown_commands};
use super::rust;
use crate::failure::{Result, verdict};
use crate::job::Job;
use crate::server::Server;
use crate::{tools, workspace};

pub(super) fn check() -> Result<String> {
    let grpcurl = tools::GRPCURL.get()?;
    let (browser, folder) = (tools::browser()?, tools::web_clients()?);
    let program = rust::examples(&["bookstore"])?.join("bookstore");
    let server = Server::start(|port| Job::new(program).arg(format!("127.0.0.1:{port}")))?;

    let readme = fs::read_to_string(workspace::root().join("examples/bookstore/README.md"))?;
    let mut commands = Cases::default();
    // curl without a progress meter, and grpcurl wherever it is installed.
    let programs =
        format!("curl() {{ command curl -sS \"$@\"; }}; grpcurl() {{ '{}' \"$@\"; }}\n", grpcurl.display());
    let consoles = code_blocks(&readme).into_iter().filter(|block| block.language == "console");
    let shown: Vec<ShownCommand> = consoles.flat_map(|block| shown_commands(&block.text)).collect();
    for ShownCommand { command, output } in &shown {
        let script = command.replace("127.0.0.1:8080", &server.address());
        let shell = Job::new("bash").arg("-c").arg(format!("{programs}{script}")).seconds(30);
        let printed = shell.text()?;
        let is_shown = printed.trim_end() == output.trim_end();
        let wrong = || failed!("printed\n{printed}\nexpected\n{output}");
        commands.count(command, is_shown.then_some(()).ok_or_else(wrong))?;
    }
    let clients = Job::new("node").arg("run.mjs").arg(browser).arg(format!("http://{}", server.address()));
    let captured = clients.directory(folder).seconds(90).output()?;
    server.stop()?;
    let (passed, failed) = (captured.count("ok "), captured.count("FAILED "));
    let summary = format!(
        "{}; in Chromium {passed} of {} cases",
        commands.summary("commands of its README"),
        passed + failed
    );
    let are_all_there = shown.len() >= COMMANDS_MIN && passed >= CASES_MIN;
    verdict(are_all_there && commands.all_passed() && failed == 0 && captured.status.success(), summary)
}

/// Number of cases in `xtask/suites/web/src/cases.js`.
const CASES_MIN: usize = 27;

/// Number of commands in `examples/bookstore/README.md`.
const COMMANDS_MIN: usize = 23;
