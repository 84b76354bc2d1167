//! `thalweg peer`: the interface that the lab expects of each stack, specified in `peers/README.md`.

mod load;
mod load_arguments;
mod moved_options;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use thalweg_load::record::Variant;

use self::load_arguments::PeerLoadArgs;
use crate::failure::Failure;
use crate::serve::{self, ServeArgs};
use crate::settings::{self, SettingsArgs};
use crate::terminal::{self, Syntax};

pub(crate) use self::moved_options::redirected_from_load;

/// Serve and load for the lab, with the interface of peers/README.md
#[derive(Debug, Args)]
pub(crate) struct PeerArgs {
    #[command(subcommand)]
    command: PeerCommand,
}

#[derive(Debug, Subcommand)]
enum PeerCommand {
    /// Serve BenchmarkService, as `thalweg serve`
    Serve(Box<ServeArgs>),
    /// Load a server with typed calls, and print thalweg.load/3
    Load(Box<PeerLoadArgs>),
    /// Print the transport settings, as `thalweg settings`
    Settings(SettingsArgs),
    /// Print the variants of server and client
    Variants,
    /// Print name and version
    Version,
}

pub(crate) fn run(args: &PeerArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        PeerCommand::Serve(args) => serve::run(args),
        PeerCommand::Load(args) => load::run(args),
        PeerCommand::Settings(args) => settings::run(args),
        PeerCommand::Variants => {
            let variants = Variant::ALL.map(|variant| variant.to_string()).join(" ");
            print(&format!("server {variants}\nclient {variants}\njson http1 h2 connect grpc-web\n"))
        }
        PeerCommand::Version => print(&format!("thalweg {}\n", env!("CARGO_PKG_VERSION"))),
    }
}

fn print(text: &str) -> Result<ExitCode, Failure> {
    terminal::print(Syntax::Text, text)?;
    Ok(ExitCode::SUCCESS)
}
