//! Drives published programs built on tonic: `serve ADDRESS` runs the server that they need, `drive NAME ADDRESS` uses
//! one of them and checks the results.
//!
//! Two manifests build these sources: `tonic` with tonic and the unchanged published crates, `thalweg-tonic` with
//! `thalweg-tonic` instead of tonic, here and in the published crates.

mod etcd;
mod outcome;
mod qdrant;
mod served;
mod serving;
mod telemetry;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome: outcome::Outcome = match args[..] {
        ["serve", address] => serving::serve(address).await,
        ["drive", "etcd", address] => etcd::drive(address).await,
        ["drive", "qdrant", address] => qdrant::drive(address).await,
        ["drive", "served", address] => served::drive(address).await,
        ["drive", "telemetry", address] => telemetry::drive(address).await,
        _ => Err(format!("unknown command `{}`", args.join(" ")).into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:?}");
            ExitCode::FAILURE
        }
    }
}
