//! Thalweg against itself under another name, in all cells of a comparison: each difference that the lab finds is a
//! false one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::bench::table::Table;
use crate::job::{Failure, Log};
use crate::peers::BuiltPeer;
use crate::{lab, workspace};

const NAME: &str = "same";
const STUDY: &str = "sizes --quick --against same --budget 200s";
const RUNS: usize = 3;
/// Intervals hold the true ratio with 95 %.
const ERROR_RATE: f64 = 0.05;

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    let [ours] = peers else { return Err(Failure::failed("this is about one stack")) };
    let directory = workspace::output().join(NAME);
    let stacks = disguised(NAME, &ours.program, "", &directory)?;
    let mut all = Verdicts::default();
    let mut rows = Vec::new();
    let mut found = Vec::new();
    for run in 1..=RUNS {
        let words = format!("{STUDY} --peers {}", stacks.display());
        let figures = lab::condensed(&words, &directory.join(format!("run-{run}")), log)?;
        let cells: Vec<&Value> = figures["cells"].as_array().into_iter().flatten().collect();
        let mut verdicts = Verdicts::default();
        for cell in cells {
            let against = &cell["against"][0];
            let is_different = verdicts.count(against["verdict"].as_str().unwrap_or_default());
            if is_different {
                found.push(different(run, cell));
            }
        }
        rows.push(verdicts.row(&run.to_string()));
        all.add(&verdicts);
    }
    rows.push(all.row("all"));
    let title = format!(
        "Thalweg against Thalweg under another name: `lab {STUDY}`, {RUNS} times. An interval holds the truth with \
         {:.0} %, so that as many as {} of {} cells may be found different by chance; the noise floor leaves fewer:",
        100.0 * (1.0 - ERROR_RATE),
        (all.cells() as f64 * ERROR_RATE).floor(),
        all.cells(),
    );
    let heads =
        ["run", "cells", "found different", "no difference beyond 10 %", "cannot tell", "not measured"];
    let mut tables = vec![Table::new(title, &heads, rows)];
    if !found.is_empty() {
        tables.push(Table::new("The cells that were found different:", &["run", "cell", "ratio"], found));
    }
    Ok(tables)
}

/// A folder of peers with one that is this program under another name. `serve_flags`: for its server.
pub(super) fn disguised(
    name: &str,
    program: &Path,
    serve_flags: &str,
    directory: &Path,
) -> Result<PathBuf, Failure> {
    let folder = directory.join("peers");
    fs::create_dir_all(folder.join(name))?;
    let script = folder.join(name).join("peer");
    let program = program.display();
    let text = format!(
        "#!/bin/sh\n\
         case \"$1\" in\n\
         version) echo 'Thalweg as \"{name}\"' ;;\n\
         variants) printf 'server\\nclient\\n' ;;\n\
         serve) exec '{program}' peer \"$@\" {serve_flags} ;;\n\
         *) exec '{program}' peer \"$@\" ;;\n\
         esac\n"
    );
    fs::write(&script, text)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    Ok(folder)
}

/// How many cells were found what.
#[derive(Default)]
struct Verdicts {
    different: usize,
    equal: usize,
    cannot_tell: usize,
    missing: usize,
}

impl Verdicts {
    /// Whether it is a difference.
    fn count(&mut self, verdict: &str) -> bool {
        match verdict {
            "faster" | "slower" => self.different += 1,
            "no difference" => self.equal += 1,
            "cannot tell" => self.cannot_tell += 1,
            _ => self.missing += 1,
        }
        matches!(verdict, "faster" | "slower")
    }

    fn cells(&self) -> usize {
        self.different + self.equal + self.cannot_tell + self.missing
    }

    fn add(&mut self, other: &Self) {
        self.different += other.different;
        self.equal += other.equal;
        self.cannot_tell += other.cannot_tell;
        self.missing += other.missing;
    }

    fn row(&self, name: &str) -> Vec<String> {
        let counts = [self.cells(), self.different, self.equal, self.cannot_tell, self.missing];
        [name.to_owned()].into_iter().chain(counts.map(|count| count.to_string())).collect()
    }
}

fn different(run: usize, cell: &Value) -> Vec<String> {
    let text = |key: &str| cell[key].as_str().unwrap_or_default();
    let place = format!(
        "{}, {} in flight, {} B, {}",
        text("work"),
        cell["in_flight"],
        cell["size_bytes"],
        text("transport")
    );
    vec![run.to_string(), place, ratio(&cell["against"][0])]
}

/// `1.05 (1.01–1.09)`.
pub(super) fn ratio(against: &Value) -> String {
    let number = |key: &str| against[key].as_f64().map_or("–".to_owned(), |it| format!("{it:.2}"));
    format!("{} ({}–{})", number("ratio"), number("low"), number("high"))
}
