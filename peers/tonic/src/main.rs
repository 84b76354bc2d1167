//! A peer of the laboratory: gRPC's BenchmarkService and a load generator, both on tonic's own transport, behind the
//! contract of `peers/README.md`.

mod address;
mod load;
mod serve;
mod told;
mod zeros;

/// What tonic's generator makes of `grpc.testing`.
mod proto {
    #![allow(dead_code, reason = "BenchmarkService uses a part of the messages")]
    include!(concat!(env!("OUT_DIR"), "/grpc.testing.rs"));
}

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use tokio::runtime::{Builder, Runtime};

#[derive(Parser)]
#[command(name = "peer", about = "gRPC's BenchmarkService and a load generator on tonic's own transport")]
struct Command {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Say which stack this is
    Version,
    /// Say which kinds of server and client there are
    Variants,
    /// Say what tonic is told, and which of its defaults matter
    Settings,
    /// Serve BenchmarkService until SIGTERM or SIGINT
    Serve(serve::ServeArgs),
    /// Drive BenchmarkService in a closed loop
    Load(load::LoadArgs),
}

/// Why a command ended without a result.
enum Failure {
    /// What was asked for makes no sense: exit code 2.
    Misuse(String),
    /// It does, and it failed: exit code 1.
    Failed(String),
}

/// The largest payload that is served or asked for: above the largest of any study.
const PAYLOAD_BYTES_MAX: usize = 64 << 20;

fn main() -> ExitCode {
    let command = match Command::try_parse() {
        Ok(command) => command.command,
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            eprintln!("error: no command was given: version, variants, settings, serve or load");
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
    let ended = match command {
        Subcommands::Version => {
            println!("{}", env!("STACK"));
            Ok(ExitCode::SUCCESS)
        }
        Subcommands::Variants => {
            println!("server {}\nclient", serve::VARIANTS.join(" "));
            Ok(ExitCode::SUCCESS)
        }
        Subcommands::Settings => {
            told::print();
            Ok(ExitCode::SUCCESS)
        }
        Subcommands::Serve(args) => serve::run(args),
        Subcommands::Load(args) => load::run(args),
    };
    match ended {
        Ok(code) => code,
        Err(Failure::Misuse(message)) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
        Err(Failure::Failed(message)) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// So many threads, or one for each processor that this process may use. If it is one, the thread that waits does the
/// work too: no hand-over between threads.
fn runtime(threads: Option<NonZeroUsize>) -> Result<Runtime, Failure> {
    let mut builder = match threads.map_or_else(threads_unasked, NonZeroUsize::get) {
        1 => Builder::new_current_thread(),
        threads => {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    };
    builder.enable_all().build().map_err(|error| Failure::Failed(format!("cannot start threads: {error}")))
}

/// One for each processor that this process may use.
fn threads_unasked() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
