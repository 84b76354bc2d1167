//! Thalweg against itself under another name, in all cells of a comparison: each difference found by the lab is a false
//! positive.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::table::Table;
use crate::failure::Result;
use crate::files::{self, list, text};
use crate::peers::BuiltPeer;
use crate::{lab, workspace};

const NAME: &str = "same";
const STUDY: &str = "sizes --quick --against same --budget 200s";
const RUNS: usize = 3;
/// Intervals contain the true ratio with 95 % probability.
const ERROR_RATE: f64 = 0.05;
/// Verdicts of the lab on a cell, and the heading of their column. Cells with other verdicts were not measured.
const VERDICTS: [(&[&str], &str); 3] = [
    (&["faster", "slower"], "found different"),
    (&["no difference"], "no difference beyond 10 %"),
    (&["cannot tell"], "cannot tell"),
];

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    let [ours] = peers else { bail!("this measures one stack") };
    let directory = workspace::output().join(NAME);
    let stacks = copies_as_stacks(NAME, &ours.program, "", &directory)?;
    let (mut all, mut rows, mut found) = ([0; 5], Vec::new(), Vec::new());
    for run in 1..=RUNS {
        let words = format!("{STUDY} --peers {}", stacks.display());
        let figures = lab::condensed(&words, &directory.join(format!("run-{run}")))?;
        let counts = counts(list(&figures["cells"]));
        rows.push(row(&run.to_string(), counts));
        all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
        let is_different = |cell: &&Value| VERDICTS[0].0.contains(&verdict(cell));
        found.extend(list(&figures["cells"]).iter().filter(is_different).map(|cell| different(run, cell)));
    }
    rows.push(row("all", all));
    let title = format!(
        "Thalweg against Thalweg under another name: `lab {STUDY}`, {RUNS} times. An interval contains the true ratio \
         with {:.0} % confidence, so up to {} of {} cells may differ by chance; the noise floor leaves fewer:",
        100.0 * (1.0 - ERROR_RATE),
        (all[0] as f64 * ERROR_RATE).floor(),
        all[0],
    );
    let columns = ["run", "cells"].into_iter().chain(VERDICTS.map(|(_, head)| head)).chain(["not measured"]);
    let mut tables = vec![Table::new(title, columns, rows)];
    if !found.is_empty() {
        tables.push(Table::new("Cells with a difference:", ["run", "cell", "ratio"], found));
    }
    Ok(tables)
}

/// Creates a folder of peers with one peer: `program` under another name, its server with `serve_flags`.
pub(super) fn copies_as_stacks(
    name: &str,
    program: &Path,
    serve_flags: &str,
    directory: &Path,
) -> Result<PathBuf> {
    let folder = directory.join("peers");
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
    files::write(&script, text)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    Ok(folder)
}

fn verdict(cell: &Value) -> &str {
    text(&cell["against"][0]["verdict"])
}

/// Counts all cells, those of each of [`VERDICTS`], and the rest.
fn counts(cells: &[Value]) -> [usize; 5] {
    let of = |known: &[&str]| cells.iter().filter(|cell| known.contains(&verdict(cell))).count();
    let [different, equal, cannot_tell] = VERDICTS.map(|(known, _)| of(known));
    [cells.len(), different, equal, cannot_tell, cells.len() - different - equal - cannot_tell]
}

fn row(name: &str, counts: [usize; 5]) -> Vec<String> {
    [name.to_owned()].into_iter().chain(counts.map(|count| count.to_string())).collect()
}

fn different(run: usize, cell: &Value) -> Vec<String> {
    let place = format!(
        "{}, {} in flight, {} B, {}",
        text(&cell["work"]),
        cell["in_flight"],
        cell["size_bytes"],
        text(&cell["transport"])
    );
    vec![run.to_string(), place, ratio(&cell["against"][0])]
}

/// Formats a ratio as `1.05 (1.01–1.09)`.
pub(super) fn ratio(against: &Value) -> String {
    let number = |key: &str| against[key].as_f64().map_or("–".to_owned(), |it| format!("{it:.2}"));
    format!("{} ({}–{})", number("ratio"), number("low"), number("high"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::counts;

    #[test]
    fn verdicts_are_counted() {
        let verdicts = ["faster", "no difference", "slower", "cannot tell", "gone"];
        let cells = verdicts.map(|verdict| json!({"against": [{"verdict": verdict}]}));
        assert_eq!(counts(&cells), [5, 2, 1, 1, 1]);
    }
}
