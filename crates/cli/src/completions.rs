//! `thalweg completions`: what makes a shell complete the command's words.

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

/// Marks arguments that are names of services and methods: nothing else of the command has this hint.
const NAMES_HINT: ValueHint = ValueHint::EmailAddress;
/// What zsh's script has of it.
const NAMES_HINT_IN_ZSH: &str = "_email_addresses";
/// What zsh's script has before arguments of which there may be several: with two colons there are no options behind
/// the first of them.
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

/// Prints the script for `command`, the one that users call.
pub(crate) fn run(args: &CompletionsArgs, command: &Command) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    let mut visible = visible(command, args.shell);
    generate(args.shell, &mut visible, command.get_name(), &mut script);
    let script = with_names(args.shell, &String::from_utf8_lossy(&script));
    terminal::print_bytes(script.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The script with what completes the names of services and methods, which only the command itself can know: it asks
/// `thalweg complete`.
fn with_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}{}", include_str!("completions/names.bash")),
        Shell::Fish => format!("{script}{}", include_str!("completions/names.fish")),
        Shell::Zsh => {
            let names = include_str!("completions/names.zsh");
            let begin = "\n_thalweg() {\n";
            // Before the words are cut down to those of a subcommand.
            let kept = format!("{begin}    local -a thalweg_line=(\"${{(@)words[1,CURRENT]}}\")\n");
            script
                .replacen(begin, &format!("\n{names}{}", &kept[1..]), 1)
                .replace(NAMES_HINT_IN_ZSH, "_thalweg_names")
                .replace(ZSH_REST, ZSH_REST_WITH_OPTIONS)
        }
        _ => script.to_owned(),
    }
}

/// The command without its hidden options, which scripts would propose.
///
/// Names are kept for as long as the program runs, as clap wants them: once, before it ends.
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

/// Names of values as the shell can read them: in zsh's script a colon would end them, and begin another value.
fn with_value_names(argument: Arg, shell: Shell) -> Arg {
    let names = argument.get_value_names().unwrap_or_default();
    if shell != Shell::Zsh || !names.iter().any(|name| name.contains(':')) {
        return argument;
    }
    let names: Vec<&'static str> = names.iter().map(|name| &*name.replace(':', "\\:").leak()).collect();
    argument.value_names(names)
}
