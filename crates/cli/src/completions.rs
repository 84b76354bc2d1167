//! `thalweg completions`: generates shell completion scripts.

use std::process::ExitCode;

use clap::{Arg, Args, Command, ValueHint};
use clap_complete::{Shell, generate};

use crate::failure::Failure;
use crate::terminal;

const INSTALL: &str = "\
Install once, then start a new shell:
  bash:  thalweg completions bash \\
             > ~/.local/share/bash-completion/completions/thalweg
  zsh:   thalweg completions zsh > ~/.zfunc/_thalweg
         (with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc)
  fish:  thalweg completions fish > ~/.config/fish/completions/thalweg.fish";

/// Marks arguments that name services and methods. No other argument has this hint.
const NAMES_HINT: ValueHint = ValueHint::EmailAddress;
/// The hint's function in zsh scripts.
const NAMES_HINT_IN_ZSH: &str = "_email_addresses";
/// Prefix of repeatable arguments in zsh scripts. With two colons zsh completes no options after the first of them.
const ZSH_REST: &str = "\n'*::";
const ZSH_REST_WITH_OPTIONS: &str = "\n'*:";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = INSTALL)]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the completion script for `command`.
pub(crate) fn run(args: &CompletionsArgs, command: &Command) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    let mut visible = visible(command, args.shell);
    generate(args.shell, &mut visible, command.get_name(), &mut script);
    let script = with_names(args.shell, &String::from_utf8_lossy(&script));
    terminal::print_bytes(script.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Adds completion of service and method names by `thalweg complete`.
fn with_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}{}", include_str!("completions/names.bash")),
        Shell::Fish => format!("{script}{}", include_str!("completions/names.fish")),
        Shell::Zsh => {
            let names = include_str!("completions/names.zsh");
            let begin = "\n_thalweg() {\n";
            // Saves the words before zsh reduces them to those of a subcommand.
            let kept = format!("{begin}    local -a thalweg_line=(\"${{(@)words[1,CURRENT]}}\")\n");
            script
                .replacen(begin, &format!("\n{names}{}", &kept[1..]), 1)
                .replace(NAMES_HINT_IN_ZSH, "_thalweg_names")
                .replace(ZSH_REST, ZSH_REST_WITH_OPTIONS)
        }
        _ => script.to_owned(),
    }
}

/// Returns the command without hidden options, which scripts would propose.
///
/// Leaks names, because clap needs them static. It runs once per process.
fn visible(command: &Command, shell: Shell) -> Command {
    let about = command.get_about().cloned().unwrap_or_default();
    let mut shown = Command::new(&*command.get_name().to_owned().leak()).about(about);
    if let Some(version) = command.get_version() {
        shown = shown.version(&*version.to_owned().leak());
    }
    let mark = |argument: &Arg| {
        let argument = with_value_names(argument.clone(), shell);
        match (command.get_name(), argument.get_id().as_str()) {
            ("call", "words") | ("load", "call") => argument.value_hint(NAMES_HINT),
            _ => argument,
        }
    };
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set()).map(mark);
    let subcommands = command.get_subcommands().filter(|command| !command.is_hide_set());
    let subcommands = subcommands.map(|command| visible(command, shell));
    shown.args(arguments).subcommands(subcommands)
}

/// Escapes colons in value names for zsh, where a colon would end the name.
fn with_value_names(argument: Arg, shell: Shell) -> Arg {
    let names = argument.get_value_names().unwrap_or_default();
    if shell != Shell::Zsh || !names.iter().any(|name| name.contains(':')) {
        return argument;
    }
    let names: Vec<&'static str> = names.iter().map(|name| &*name.replace(':', "\\:").leak()).collect();
    argument.value_names(names)
}
