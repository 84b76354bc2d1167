//! Measurements: each is a command and writes one results file.

use std::path::Path;

use serde_json::{Value, json};

use super::results::{self, Origin};
use crate::arguments::are_known;
use crate::bench;
use crate::bench::table::Table;
use crate::bench::turns::Spread;
use crate::failure::Result;
use crate::files::{self, list, text};
use crate::job::Job;
use crate::{lab, log, protos, workspace};

pub(super) struct Measurement {
    pub(super) name: String,
    /// The command for users to repeat the measurement.
    pub(super) command: String,
    /// Folders of the measured code.
    pub(super) about: Vec<String>,
    /// Least number of processors needed.
    processors: u64,
}

/// Prefix of the commands of studies.
const STUDY: &str = "cargo run --release -- lab ";
/// The Protobuf codec's example.
const SPEED: &str = "cargo run --release -p thalweg-codec --example speed -- --rounds 11";
const SPEED_RUNS: usize = 5;

/// Reads `xtask/measurements.json`, in the order of measuring.
pub(super) fn all() -> Result<Vec<Measurement>> {
    let all = files::json(&workspace::root().join("xtask/measurements.json"))?;
    let measurement = |it: &Value| Measurement {
        name: text(&it["name"]).to_owned(),
        command: text(&it["command"]).to_owned(),
        about: list(&it["about"]).iter().map(|folder| text(folder).to_owned()).collect(),
        processors: it["processors"].as_u64().unwrap_or(1),
    };
    Ok(list(&all).iter().map(measurement).collect())
}

impl Measurement {
    fn measure(&self) -> Result<Value> {
        if let Some(words) = self.command.strip_prefix(STUDY) {
            return lab::condensed(words, &workspace::output().join("figures").join(&self.name));
        }
        match self.command.split(' ').collect::<Vec<_>>()[..] {
            ["cargo", "xtask", "bench", name] => benchmark(name, None),
            ["cargo", "xtask", "bench", name, "--peers", peers] => benchmark(name, Some(peers)),
            ["cargo", "xtask", "protos"] => protos::measure(),
            _ if self.command == SPEED => speed(),
            _ => Err(failed!("unknown command: {}", self.command)),
        }
    }
}

fn benchmark(name: &str, peers: Option<&str>) -> Result<Value> {
    let tables = bench::tables(name, peers)?;
    Ok(json!({"tables": tables.iter().map(Table::json).collect::<Vec<_>>()}))
}

/// Returns the measurements with these names; fails on unknown names.
fn measurements_named(names: &[String]) -> Result<Vec<Measurement>> {
    let mut all = all()?;
    are_known("measurement", names, &all.iter().map(|it| it.name.as_str()).collect::<Vec<_>>())?;
    all.retain(|it| names.contains(&it.name));
    Ok(all)
}

fn check_committed() -> Result<()> {
    let changed = Job::new("git").words("status --porcelain -- crates peers python Cargo.lock").text()?;
    ensure!(changed.trim().is_empty(), "figures name their commit; commit your changes first");
    Ok(())
}

/// Imports the `results.json` of a study that another machine made of this checkout's commit.
pub(super) fn import(name: &str, study: &Path) -> Result<()> {
    log::start("figures")?;
    let measurement = measurements_named(&[name.to_owned()])?.remove(0);
    check_committed()?;
    let figures = lab::condensed_from(study)?;
    let made = files::json(study)?;
    let arguments = list(&made["settings"]["arguments"]);
    let mut words = measurement.command.split(' ').skip_while(|word| *word != "lab");
    if let Some(missing) = words.find(|word| !arguments.iter().any(|argument| argument == word)) {
        let command = &measurement.command;
        bail!("{} was not made by `{command}`: missing `{missing}`", study.display());
    }
    results::write(name, &measurement.command, &figures, &Origin::of_study(&made)?)
}

/// Runs these measurements, or all that this machine has enough processors for, and writes their results files.
pub(super) fn run(names: &[String]) -> Result<()> {
    log::start("figures")?;
    let measurements = if names.is_empty() { all()? } else { measurements_named(names)? };
    check_committed()?;
    let processors = std::thread::available_parallelism()?.get() as u64;
    for it in measurements {
        if names.is_empty() && it.processors > processors {
            println!("\n{}: skipped, needs {} processors", it.name, it.processors);
        } else {
            println!("\n{}: {}\n", it.name, it.command);
            results::write(&it.name, &it.command, &it.measure()?, &Origin::here_and_now()?)?;
        }
    }
    Ok(())
}

/// Runs the example several times and returns medians of the rates and of the ratios within a run.
fn speed() -> Result<Value> {
    let job = Job::cargo(SPEED.strip_prefix("cargo ").unwrap_or(SPEED)).minutes(30);
    let runs = (0..SPEED_RUNS).map(|_| Ok(speed_lines(&job.text()?))).collect::<Result<Vec<_>>>()?;
    let line = |(index, line): (usize, &SpeedLine)| {
        let median = |of: &dyn Fn(&SpeedLine) -> f64| {
            runs.iter().filter_map(|run| run.get(index)).map(of).collect::<Spread>().median
        };
        let times = line.contenders.iter().enumerate().map(|(contender, (name, ..))| {
            let ratio = median(&|line| line.contenders.get(contender).map_or(0.0, |it| it.2));
            (name.clone(), json!((ratio * 100.0).round() / 100.0))
        });
        json!({
            "shape": line.shape, "bytes": line.bytes, "direction": line.direction,
            "mb_per_s": median(&|line| line.contenders.first().map_or(0.0, |it| it.1)).round(),
            "times": times.collect::<serde_json::Map<_, _>>(),
        })
    };
    Ok(json!({"runs": SPEED_RUNS, "lines": runs[0].iter().enumerate().map(line).collect::<Vec<_>>()}))
}

/// A line of the example's output.
#[derive(Debug, PartialEq)]
struct SpeedLine {
    shape: String,
    bytes: u64,
    direction: String,
    /// Name, MB/s, and the engine's rate divided by this one.
    contenders: Vec<(String, f64, f64)>,
}

fn speed_lines(text: &str) -> Vec<SpeedLine> {
    text.lines().filter_map(speed_line).collect()
}

/// Parses `SmallFlat (198 B) decode          engine 2666 (1.00)  engine, owned 2000 (1.33)`.
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
    use super::{SpeedLine, all, results, speed_lines};

    #[test]
    fn every_results_file_has_a_measurement() {
        let (results, all) = (results::Results::read().unwrap(), all().unwrap());
        for name in results.all_figures().keys() {
            assert!(all.iter().any(|it| it.name == *name), "nothing measures {name}");
        }
    }

    #[test]
    fn speed_output_is_parsed() {
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
