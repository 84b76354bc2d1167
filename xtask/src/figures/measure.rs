//! What measures: each measurement is some commands and leaves one results file.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::results;
use crate::bench;
use crate::bench::table::median_and_range;
use crate::job::{Failure, Job, Log};
use crate::{lab, workspace};

/// One results file.
pub(super) struct Measurement {
    pub(super) name: &'static str,
    how: How,
    /// The folders of the code that it is about.
    pub(super) subject: &'static [&'static str],
    /// How many it takes at least.
    processors: usize,
}

enum How {
    /// `cargo xtask bench NAME --peers …`; without peers where it compares none.
    Bench { name: &'static str, peers: &'static str },
    /// `thalweg lab …`, condensed by the lab.
    Study(&'static str),
    /// The example `speed` of the Protobuf engine.
    Speed,
    /// `cargo xtask protos`.
    Protos,
}

const STACK: &[&str] = &["crates/http2", "crates/engine", "crates/thalweg"];
const DROP_IN: &[&str] = &["crates/http2", "crates/engine", "crates/tonic"];
const GENERATOR: &[&str] = &["crates/http2", "crates/engine", "crates/thalweg", "crates/load", "crates/cli"];
const LAB: &[&str] = &["crates/load", "crates/lab", "crates/measure"];
const ENGINE: &[&str] = &["crates/protobuf"];
const CODECS: &[&str] = &["crates/codec", "crates/messages", "crates/protobuf"];
const WEB: &[&str] = &["crates/http2", "crates/engine", "crates/thalweg", "crates/web", "crates/protobuf"];
const SPEED_RUNS: usize = 5;
const SPEED: &str = "cargo run --release -p thalweg-codec --example speed -- --rounds 11";
const ALL: &str = "thalweg,tonic,grpc-cpp";

const fn bench(name: &'static str, peers: &'static str, subject: &'static [&'static str]) -> Measurement {
    Measurement { name, how: How::Bench { name, peers }, subject, processors: 1 }
}

const fn study(name: &'static str, words: &'static str, subject: &'static [&'static str]) -> Measurement {
    Measurement { name, how: How::Study(words), subject, processors: 1 }
}

/// All of them, in the order in which they are measured.
pub(super) const MEASUREMENTS: &[Measurement] = &[
    study(
        "ends",
        "sizes --quick --against tonic,grpc-cpp,grpc-go --ends --connections 1,16 -c 64 --sizes \
         0,1KiB,64KiB --transports tcp --budget 18m",
        STACK,
    ),
    study("comparison-tcp", "sizes --against tonic,grpc-cpp,grpc-go,socket --quick", STACK),
    study(
        "comparison-uds",
        "sizes --against tonic,grpc-cpp,socket --quick --transports uds --sizes 0,1KiB,64KiB,1.5MB,4MiB \
         -c 4 --budget 340s",
        STACK,
    ),
    study(
        "streams-tcp-4mib",
        "sizes --against tonic,socket --quick --calls client-stream,server-stream --sizes 4MiB \
         --transports tcp --budget 40s",
        STACK,
    ),
    study(
        "in-flight-64",
        "sizes --against tonic,grpc-cpp,socket --quick --calls unary --sizes 0 --transports tcp --budget \
         60s -c 64",
        STACK,
    ),
    study(
        "in-flight-256",
        "sizes --against tonic,grpc-cpp,socket --quick --calls unary --sizes 0 --transports tcp --budget \
         60s -c 256",
        STACK,
    ),
    study(
        "in-flight-256-connections-16",
        "sizes --against tonic,grpc-cpp,socket --quick --calls unary --sizes 0 --transports tcp --budget \
         60s -c 256 --connections 16",
        STACK,
    ),
    study("lanes", "channels --quick --rounds 6 --strategies adaptive,1,2,3", STACK),
    Measurement {
        processors: 16,
        ..study(
            "many-processors",
            "channels --against tonic,grpc-cpp,grpc-go --calls unary -c 16,64,256,1024 --rounds 5 \
         --round-trips 0s --strategies adaptive,1,4,8 --connections 8 --client-cpus 0-7 --server-cpus \
         8-15 --budget 290s",
            STACK,
        )
    },
    bench("polling", ALL, STACK),
    bench("instructions", "thalweg,thalweg-tonic,tonic,grpc-cpp", STACK),
    bench("allocations", ALL, STACK),
    bench("memory", ALL, STACK),
    bench("idle", "thalweg", STACK),
    bench("tls", ALL, STACK),
    bench("drop-in", "tonic,thalweg-tonic,thalweg", DROP_IN),
    bench("beside", "thalweg", STACK),
    bench("flight", "", DROP_IN),
    bench("generators", "thalweg", GENERATOR),
    bench("same", "thalweg", LAB),
    bench("slowed", "thalweg", LAB),
    bench("attacks", "thalweg,tonic,grpc-go,grpc-cpp", STACK),
    bench("hoards", "thalweg", STACK),
    study("connections", "connections --quick --against tonic,grpc-cpp,grpc-go", STACK),
    study("codec", "codec --quick --against jvm --budget 150s", CODECS),
    study(
        "codec-ten-million",
        "codec --messages person-sparse --steps 10,10000000 --rounds 3 --no-calls --no-instructions \
         --codecs prost,buffa,serde_json,sonic-rs,rmp-serde",
        CODECS,
    ),
    study(
        "json",
        "json --quick --against \
         axum,grpc-gateway,grpc-gateway:inside,connect-go,spring,armeria,armeria:transcoded,lognet \
         --budget 12m",
        WEB,
    ),
    study("published", "published", STACK),
    Measurement { name: "protobuf", how: How::Speed, subject: ENGINE, processors: 1 },
    Measurement { name: "protos", how: How::Protos, subject: ENGINE, processors: 1 },
];

impl Measurement {
    /// What a person types to measure the same.
    pub(super) fn command(&self) -> String {
        match &self.how {
            How::Bench { name, peers: "" } => format!("cargo xtask bench {name}"),
            How::Bench { name, peers } => format!("cargo xtask bench {name} --peers {peers}"),
            How::Study(words) => format!("cargo run --release -- lab {words}"),
            How::Speed => SPEED.to_owned(),
            How::Protos => "cargo xtask protos".to_owned(),
        }
    }

    fn measure(&self, log: &Log) -> Result<Value, Failure> {
        match &self.how {
            How::Bench { name, peers } => {
                let tables = bench::tables(name, peers, log)?;
                Ok(json!({"tables": tables.iter().map(bench::table::Table::json).collect::<Vec<_>>()}))
            }
            How::Study(words) => {
                lab::condensed(words, &workspace::output().join("figures").join(self.name), log)
            }
            How::Speed => speed(log),
            How::Protos => crate::protos::measure(log),
        }
    }
}

fn found(name: &str) -> Result<&'static Measurement, Failure> {
    MEASUREMENTS.iter().find(|measurement| measurement.name == name).ok_or_else(|| {
        let all: Vec<&str> = MEASUREMENTS.iter().map(|measurement| measurement.name).collect();
        Failure::failed(format!("nothing measures `{name}`; there are {}", all.join(", ")))
    })
}

fn check_committed(log: &Log) -> Result<(), Failure> {
    let changed = Job::new("git").words("status --porcelain -- crates peers Cargo.lock").text(log)?;
    if !changed.trim().is_empty() {
        return Err(Failure::failed(
            "figures name the commit that they are of: commit what is changed first",
        ));
    }
    Ok(())
}

/// Takes over what a study of this checkout's commit has found on another machine: its `results.json`.
pub(super) fn take(name: &str, study: &Path) -> Result<(), Failure> {
    let measurement = found(name)?;
    let log = Log::create("figures")?;
    check_committed(&log)?;
    let figures = lab::condensed_from(study, &log)?;
    let text = fs::read_to_string(study)?;
    let made: Value = serde_json::from_str(&text)
        .map_err(|why| Failure::failed(format!("{} is not JSON: {why}", study.display())))?;
    let command = measurement.command();
    let missing = command.split(' ').skip_while(|word| *word != "lab").find(|word| {
        let arguments = made["settings"]["arguments"].as_array();
        !arguments.is_some_and(|arguments| arguments.iter().any(|argument| argument == word))
    });
    if let Some(missing) = missing {
        let message = format!("{} was not made by `{command}`: it had no `{missing}`", study.display());
        return Err(Failure::failed(message));
    }
    let path = results::write_of(name, &[command], &figures, &results::Origin::of_study(&made)?, &log)?;
    println!("\nwritten to {}", path.display());
    Ok(())
}

/// Measures these, or all but those for other machines, and writes their results files.
pub(super) fn run(names: &[String]) -> Result<(), Failure> {
    for name in names {
        found(name)?;
    }
    let log = Log::create("figures")?;
    check_committed(&log)?;
    let processors = std::thread::available_parallelism()?.get();
    for measurement in MEASUREMENTS {
        if names.is_empty() && measurement.processors > processors {
            println!("\n{}: left out, it takes {} processors", measurement.name, measurement.processors);
        } else if names.is_empty() || names.iter().any(|name| name == measurement.name) {
            println!("\n{}: {}\n", measurement.name, measurement.command());
            let figures = measurement.measure(&log)?;
            let path = results::write(measurement.name, &[measurement.command()], &figures, &log)?;
            println!("\nwritten to {}", path.display());
        }
    }
    Ok(())
}

/// Commits since `commit` that touch these folders.
pub(super) fn commits_since(commit: &str, folders: &[&str], log: &Log) -> Result<String, Failure> {
    let words = format!("rev-list --count {commit}..HEAD -- {}", folders.join(" "));
    Ok(Job::new("git").words(&words).text(log)?.trim().to_owned())
}

/// Some runs of the example: medians of the rates, and of the ratios of each run.
fn speed(log: &Log) -> Result<Value, Failure> {
    let job = Job::cargo(SPEED.strip_prefix("cargo ").unwrap_or(SPEED)).minutes(30);
    let runs =
        (0..SPEED_RUNS).map(|_| Ok(speed_lines(&job.text(log)?))).collect::<Result<Vec<_>, Failure>>()?;
    let first = runs.first().ok_or_else(|| Failure::failed("nothing was run"))?;
    let mut lines = Vec::new();
    for (index, line) in first.iter().enumerate() {
        let same: Vec<&SpeedLine> = runs.iter().filter_map(|run| run.get(index)).collect();
        let median =
            |of: &dyn Fn(&SpeedLine) -> f64| median_and_range(same.iter().map(|line| of(line)).collect()).0;
        let mut times = serde_json::Map::new();
        for (contender, (name, ..)) in line.contenders.iter().enumerate() {
            let ratio = median(&|line| line.contenders.get(contender).map_or(0.0, |it| it.2));
            times.insert(name.clone(), json!((ratio * 100.0).round() / 100.0));
        }
        let rate = median(&|line| line.contenders.first().map_or(0.0, |it| it.1));
        lines.push(json!({
            "shape": line.shape, "bytes": line.bytes, "direction": line.direction,
            "mb_per_s": rate.round(), "times": times,
        }));
    }
    Ok(json!({"runs": SPEED_RUNS, "lines": lines}))
}

/// A line that the example prints.
#[derive(Debug, PartialEq)]
struct SpeedLine {
    shape: String,
    bytes: u64,
    direction: String,
    /// Name, MB/s, and how often its rate fits into the engine's.
    contenders: Vec<(String, f64, f64)>,
}

fn speed_lines(text: &str) -> Vec<SpeedLine> {
    text.lines().filter_map(speed_line).collect()
}

/// `SmallFlat (198 B) decode          engine 2666 (1.00)  engine, owned 2000 (1.33)`.
fn speed_line(line: &str) -> Option<SpeedLine> {
    let (what, rest) = line.split_once("  ")?;
    let (shape, after) = what.split_once(" (")?;
    let (bytes, direction) = after.split_once(" B) ")?;
    let contender = |text: &str| {
        let (name_and_rate, ratio) = text.trim().strip_suffix(')')?.rsplit_once(" (")?;
        let (name, rate) = name_and_rate.rsplit_once(' ')?;
        Some((name.to_owned(), rate.parse().ok()?, ratio.parse().ok()?))
    };
    Some(SpeedLine {
        shape: shape.to_owned(),
        bytes: bytes.parse().ok()?,
        direction: direction.trim().to_owned(),
        contenders: rest.split("  ").filter(|text| !text.trim().is_empty()).filter_map(contender).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::{MEASUREMENTS, SpeedLine, speed_lines};

    #[test]
    fn every_results_file_has_a_measurement() {
        let results = super::results::Results::read().unwrap();
        for name in results.all_figures().keys() {
            assert!(MEASUREMENTS.iter().any(|it| it.name == *name), "nothing measures {name}");
        }
    }

    #[test]
    fn the_examples_lines_are_read() {
        let text = "MB/s, median of 11 rounds; in brackets how often the engine's fits in\n\
                    SmallFlat (198 B) decode          engine 2666 (1.00)  engine, owned 2001 (1.33)\n";
        let expected = SpeedLine {
            shape: "SmallFlat".to_owned(),
            bytes: 198,
            direction: "decode".to_owned(),
            contenders: vec![("engine".to_owned(), 2666.0, 1.0), ("engine, owned".to_owned(), 2001.0, 1.33)],
        };
        assert_eq!(speed_lines(text), [expected]);
    }
}
