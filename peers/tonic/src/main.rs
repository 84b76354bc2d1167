//! A peer of the laboratory: gRPC's BenchmarkService and a load generator, both on tonic's own transport. Its command
//! line and its JSON are those of `thalweg serve` and `thalweg load`, as far as it goes.

mod load;
mod messages;
mod serve;

/// What tonic-build generated.
mod benchmark {
    include!(concat!(env!("OUT_DIR"), "/grpc.testing.BenchmarkService.rs"));
}

use std::error::Error;
use std::net::SocketAddr;

use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Command {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Say which stack this is.
    Version,
    /// Serve BenchmarkService until SIGTERM.
    Serve {
        #[arg(long, default_value = "127.0.0.1:50051")]
        listen: SocketAddr,
    },
    /// Drive BenchmarkService.
    Load(load::Load),
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match Command::parse().command {
        Subcommands::Version => {
            println!("tonic 0.14.9");
            Ok(())
        }
        Subcommands::Serve { listen } => serve::serve(listen).await,
        Subcommands::Load(load) => load.run().await,
    }
}
