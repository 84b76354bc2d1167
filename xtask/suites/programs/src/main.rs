//! Published programs that stand on tonic, driven: `serve ADDRESS` is the server that they need, `drive NAME ADDRESS`
//! uses one of them and asserts what it did.
//!
//! Two manifests build these sources: `tonic` has tonic and the published crates as they are, `thalweg-tonic` has
//! `thalweg-tonic` in tonic's place, here and in the published crates.

mod etcd;
mod outcome;
mod qdrant;
mod served;
mod serving;
mod telemetry;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome: outcome::Outcome = match words[..] {
        ["serve", address] => serving::serve(address).await,
        ["drive", "etcd", address] => etcd::drive(address).await,
        ["drive", "qdrant", address] => qdrant::drive(address).await,
        ["drive", "served", address] => served::drive(address).await,
        ["drive", "telemetry", address] => telemetry::drive(address).await,
        _ => Err(format!("`{}` is no command", words.join(" ")).into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:?}");
            ExitCode::FAILURE
        }
    }
}
