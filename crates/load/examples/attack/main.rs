//! A malicious client with one class of attack: how long the server tolerates it, and at what cost.
//!
//! ```text
//! cargo run --release -p thalweg-load --example attack -- 127.0.0.1:50051 ping --for 10s
//! cargo run --release -p thalweg-load --example attack -- 127.0.0.1:50051 tls-silent --cacert certs/ca.pem
//! cargo run --release -p thalweg-load --example attack -- 127.0.0.1:50051 honest
//! ```
//!
//! The server must offer `grpc.testing.BenchmarkService`, and for attacks on TLS present a certificate for `localhost`.
//! Prints `attacking` once it has started, and finally a line of JSON: what was sent, and when and how the server ended
//! the attack. `honest` makes 200 calls per second like an honest client, and prints their latencies.

mod classes;
mod frames;
mod hoard;
mod honest;
mod outcome;
mod tls;
mod wire;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};

use classes::{Class, Work};
use outcome::{CloseInfo, LAST_WORDS, Outcome};
use tls::Siege;
use wire::Wire;

/// Attacks a gRPC server
#[derive(Debug, Parser)]
struct Args {
    /// HOST:PORT of a server that offers `grpc.testing.BenchmarkService`
    target: String,
    /// Class of attack, or `honest`
    #[arg(value_parser = parse_selection)]
    what: Selection,
    /// Duration, unless the server ends the attack
    #[arg(long = "for", default_value = "10s", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// Number of connections, for attacks that hold connections
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// CA certificate of the server, for attacks on TLS and an honest client during them
    #[arg(long)]
    cacert: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug)]
enum Selection {
    Honest,
    Attack(Class),
}

fn parse_selection(word: &str) -> Result<Selection, String> {
    if word == "honest" {
        return Ok(Selection::Honest);
    }
    let known = || {
        let all = Class::value_variants().iter().filter_map(Class::to_possible_value);
        all.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ")
    };
    Class::from_str(word, false)
        .map(Selection::Attack)
        .map_err(|_| format!("use honest, or one of {}", known()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let printed = match args.what {
        Selection::Honest => honest::run(&args.target, args.duration, args.cacert.as_deref())?,
        Selection::Attack(class) => attack(&args, class)?.json(&format!("{class:?}")),
    };
    println!("{printed}");
    Ok(())
}

fn attack(args: &Args, class: Class) -> Result<Outcome, Box<dyn Error>> {
    let began = Instant::now();
    let until = began + args.duration;
    let wires = match class.work() {
        Work::Flood { settings, acks, first, round } => {
            let mut wire = Wire::connect(&args.target, settings, acks)?;
            println!("attacking");
            wire.send(first);
            for number in 0.. {
                if Instant::now() >= until || !wire.send(|frames| round(frames, number)) {
                    break;
                }
            }
            vec![wire]
        }
        Work::Hold { settings, reads, counts_calls, first, drip } => {
            let mut wires = Vec::new();
            for _ in 0..args.connections {
                // A server that refuses further connections has defended itself too.
                let Ok(mut wire) = Wire::connect(&args.target, settings, true) else { break };
                if !reads {
                    wire.stop_reading();
                }
                if counts_calls {
                    wire.count_calls();
                }
                wire.send(|frames| {
                    first(frames);
                    frames.is_urgent = true;
                });
                wires.push(wire);
            }
            println!("attacking");
            while Instant::now() < until && wires.iter().any(|wire| wire.end().is_none()) {
                thread::sleep(Duration::from_millis(100));
                for wire in wires.iter_mut().filter(|wire| wire.end().is_none()) {
                    wire.send(drip);
                }
            }
            wires
        }
        Work::Tls(work) => {
            let Some(authority) = &args.cacert else { return Err("TLS attacks need --cacert".into()) };
            let connections = args.connections;
            return work.run(&Siege { target: &args.target, authority, connections, until });
        }
        Work::Hoard(hoard) => {
            let authority = args.cacert.as_deref().unwrap_or(Path::new(""));
            let connections = args.connections;
            return Ok(hoard.run(&Siege { target: &args.target, authority, connections, until }));
        }
    };
    Ok(outcome(&wires, began))
}

fn outcome(wires: &[Wire], began: Instant) -> Outcome {
    thread::sleep(LAST_WORDS);
    let ends: Vec<CloseInfo> = wires.iter().filter_map(Wire::end).collect();
    Outcome {
        began,
        connections: wires.len(),
        sent_bytes: wires.iter().map(|wire| wire.sent_bytes).sum(),
        sent_frames: wires.iter().map(|wire| wire.sent_frames).sum(),
        ends,
        lasted: began.elapsed(),
    }
}
