//! `thalweg man`: writes man pages.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command, ValueHint};

use crate::failure::Failure;

const READ: &str = "\
Read a page directly, or write the pages to a directory that `man` searches:
  man ./man/thalweg-load.1
  thalweg man ~/.local/share/man/man1";

/// Write man pages, one for each command
#[derive(Debug, Args)]
#[command(after_help = READ)]
pub(crate) struct ManArgs {
    /// Output folder, created if missing
    #[arg(value_hint = ValueHint::DirPath)]
    directory: PathBuf,
}

/// Writes the man pages of `command`.
pub(crate) fn run(args: &ManArgs, command: Command) -> Result<ExitCode, Failure> {
    let written = fs::create_dir_all(&args.directory)
        .and_then(|()| clap_mangen::generate_to(command.disable_help_subcommand(true), &args.directory));
    written.map_err(|error| {
        Failure::failed(format!("failed to write man pages to {}: {error}", args.directory.display()))
    })?;
    Ok(ExitCode::SUCCESS)
}
