//! Drives published programs built on tonic: `serve ADDRESS SOCKET` runs the server that they need, and `serve-streams
//! ADDRESS` one of streams alone; `drive NAME
//! ADDRESS` uses one of them, checks the results and prints some, which are the same on each stack; `rate NAME ADDRESS
//! SECONDS PID` prints calls per second and the CPU time of a call in µs, of this process and of the server's. The
//! address of `containerd` and `spiffe` is the path of a UNIX socket.
//!
//! Three manifests build these sources: `tonic` with tonic and the unchanged published crates, `thalweg-tonic` with
//! `thalweg-tonic` instead of tonic, here and in the published crates, and `patched` with `[patch]`.

mod console;
mod containerd;
mod etcd;
mod flight;
mod forest;
mod outcome;
mod pubsub;
mod qdrant;
mod rates;
mod served;
mod serving;
mod streams;
mod telemetry;
mod workload;
mod xds;

use std::process::ExitCode;

use outcome::Outcome;

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args[..] {
        ["serve", address, socket] => serving::serve(address, socket).await,
        ["serve-streams", address] => streams::serve(address).await,
        ["drive", name, address] => drive(name, address).await,
        ["rate", name, address, seconds, server] => rates::measure(name, address, seconds, server).await,
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

async fn drive(name: &str, address: &str) -> Outcome {
    match name {
        "console" => console::drive(address).await,
        "containerd" => containerd::drive(address).await,
        "details" => forest::drive_details(address).await,
        "etcd" => etcd::drive(address).await,
        "flight" => flight::drive(address).await,
        "middleware" => forest::drive_middleware(address).await,
        "pubsub" => pubsub::drive(address).await,
        "qdrant" => qdrant::drive(address).await,
        "served" => served::drive(address).await,
        "spiffe" => workload::drive(address).await,
        "telemetry" => telemetry::drive(address).await,
        "xds" => xds::drive(address).await,
        _ => Err(format!("unknown program `{name}`").into()),
    }
}
