//! The `thalweg` command: server, load generator, network emulator and studies of all three.

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "use `terminal`, which escapes control characters"
)]

mod alternate_screen;
mod balancing;
mod bars;
mod call;
mod call_arguments;
mod certs;
mod choice;
mod compare;
mod complete;
mod completions;
mod descriptor_files;
mod failure;
mod format;
mod inspect;
mod keepalive;
mod lab;
mod link;
mod load;
mod load_arguments;
mod man;
mod merge;
mod output;
mod peer;
mod percent;
mod report_text;
mod request;
mod rows;
mod run_text;
mod runtime;
mod schema;
mod seconds;
mod serve;
mod settings;
mod signals;
mod spellings;
mod status;
mod terminal;
mod text;
mod tls;
mod user_messages;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use failure::Failure;
use terminal::Syntax;

/// Call, load-test, compare and study gRPC servers.
#[derive(Debug, Parser)]
#[command(name = "thalweg", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    Load(Box<load::LoadArgs>),
    Call(Box<call::CallArgs>),
    Merge(merge::MergeArgs),
    Compare(Box<compare::CompareArgs>),
    Lab(lab::LabArgs),
    Link(link::LinkArgs),
    Inspect(inspect::InspectArgs),
    Certs(certs::CertsArgs),
    Settings(settings::SettingsArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    #[command(hide = true)]
    Peer(peer::PeerArgs),
    #[command(hide = true)]
    Complete(complete::CompleteArgs),
}

fn main() -> ExitCode {
    run().unwrap_or_else(|failure| {
        if !failure.is_quiet() {
            terminal::error(&failure.message);
        }
        ExitCode::from(failure.code)
    })
}

fn run() -> Result<ExitCode, Failure> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if let Some((redirected, option)) = peer::redirected_from_load(&words) {
        terminal::say(&format!("note: {option} is an option of `thalweg peer load`; running that"));
        words = redirected;
    }
    let words = spellings::normalize(&Cli::command(), words);
    match Cli::try_parse_from(words.map_err(Failure::bad_arguments)?) {
        Ok(cli) => command(cli.command),
        Err(error) => no_command(&error),
    }
}

/// Prints help to stdout (exit code 0) or errors to stderr (exit code 2).
fn no_command(error: &clap::Error) -> Result<ExitCode, Failure> {
    let text = error.render().to_string();
    if error.use_stderr() {
        terminal::say(text.trim_end());
    } else {
        terminal::print(Syntax::Text, &text)?;
    }
    Ok(ExitCode::from(error.exit_code() as u8))
}

fn command(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Serve(args) => serve::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Call(args) => call::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Lab(args) => lab::run(args),
        Command::Link(args) => link::run(args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Certs(args) => certs::run(&args),
        Command::Settings(args) => settings::run(&args),
        Command::Completions(args) => completions::run(&args, &Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
        Command::Peer(args) => peer::run(&args),
        Command::Complete(args) => complete::run(&args, &candidates),
    }
}

/// Returns completions for the word `here`, of which `typed` is the typed part.
async fn candidates(words: &[String], here: &str, typed: &str) -> Option<Vec<String>> {
    let words = spellings::normalize(&Cli::command(), words.iter().map(OsString::from).collect()).ok()?;
    match Cli::try_parse_from(words).ok()?.command {
        Command::Call(args) => call::complete(&args, here, typed).await,
        Command::Load(args) => load::complete(&args, here, typed).await,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples must fit into 80 columns: clap breaks longer lines, and a broken command cannot be copied.
    #[test]
    fn examples_fit_into_80_columns() {
        fn check(command: &clap::Command) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines().filter(|line| line.starts_with("  ")) {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn options_are_grouped_by_heading() {
        let command = Cli::command();
        let call = command.find_subcommand("call").unwrap();
        let below = |heading: &str| {
            let arguments = call.get_arguments().filter(|it| it.get_help_heading() == Some(heading));
            arguments.filter_map(clap::Arg::get_long).collect::<Vec<_>>()
        };
        assert_eq!(
            below("Descriptors (default: server reflection)"),
            ["proto", "import-path", "protoset", "protoset-out"]
        );
        assert!(below("Connection").contains(&"connect-timeout") && below("Formats").contains(&"format"));
    }
}
