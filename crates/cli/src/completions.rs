//! `thalweg completions`: what makes a shell complete the command's words.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::failure::Failure;

const INSTALL: &str = "\
Install it once, and begin a new shell:
  bash:  thalweg completions bash > ~/.local/share/bash-completion/completions/thalweg
  zsh:   thalweg completions zsh > ~/.zfunc/_thalweg
         (with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc)";

/// Print a script that completes commands, options and their values in a shell
#[derive(Debug, Args)]
#[command(after_help = INSTALL)]
pub(crate) struct CompletionsArgs {
    /// Whose script
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script for `command`, the one that users call.
pub(crate) fn run(args: &CompletionsArgs, command: &Command) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    let mut visible = visible(command);
    generate(args.shell, &mut visible, command.get_name(), &mut script);
    let written = io::stdout().write_all(&script);
    written.map_err(|error| Failure::failed(format!("the script cannot be written: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// The command without its hidden options, which scripts would propose.
///
/// Names are kept for as long as the program runs, as clap wants them: once, before it ends.
fn visible(command: &Command) -> Command {
    let about = command.get_about().cloned().unwrap_or_default();
    let mut shown = Command::new(&*command.get_name().to_owned().leak()).about(about);
    if let Some(version) = command.get_version() {
        shown = shown.version(&*version.to_owned().leak());
    }
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned();
    let subcommands = command.get_subcommands().filter(|command| !command.is_hide_set()).map(visible);
    shown.args(arguments).subcommands(subcommands)
}
