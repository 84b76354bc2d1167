//! A peer of the laboratory: the JSON API that a Rust user writes by hand, on axum and serde_json, and the same work as
//! gRPC on tonic, behind the contract of `peers/README.md`.

#[path = "../../tonic/src/address.rs"]
mod address;
mod grpc;
mod json;
#[path = "../../tonic/src/serve/listener.rs"]
mod listener;
mod serve;
mod times;
mod told;

/// What tonic's generator makes of `thalweg.lab.v1`.
mod proto {
    include!(concat!(env!("OUT_DIR"), "/thalweg.lab.v1.rs"));
}

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "peer", about = "The lab's Echo as JSON on axum and serde_json, and as gRPC on tonic")]
struct Command {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Say which stack this is
    Version,
    /// Say which kinds of server and client there are, and what the JSON address speaks
    Variants,
    /// Say what axum and tonic are told, and which of their defaults matter
    Settings,
    /// Serve Echo as gRPC and as JSON until SIGTERM or SIGINT
    Serve(serve::ServeArgs),
}

fn main() -> ExitCode {
    let command = match Command::try_parse() {
        Ok(command) => command.command,
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            eprintln!("error: no command was given: version, variants, settings or serve");
            return ExitCode::from(2);
        }
        Err(error) => {
            // The first paragraph says what is wrong; the others repeat the usage.
            let text = error.to_string();
            let first = text.split("\n\n").next().unwrap_or_default();
            eprintln!("{}", first.split_whitespace().collect::<Vec<_>>().join(" "));
            return ExitCode::from(2);
        }
    };
    match command {
        Subcommands::Version => println!("{}", env!("STACK")),
        Subcommands::Variants => println!("server\nclient\njson http1 h2"),
        Subcommands::Settings => told::print(),
        Subcommands::Serve(args) => {
            if let Err(message) = serve::run(&args) {
                eprintln!("error: {message}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
