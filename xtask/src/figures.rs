//! `cargo xtask figures`: the tables of measured figures in the documents are made of the results files in
//! `docs/results`, and those by commands that measure.
//!
//! A page has a table between `<!-- figures: NAME -->` and `<!-- /figures -->`; its template is
//! `xtask/figures/NAME.jinja`. A figure whose results files are not all there keeps the text that the page has, which
//! must say that it awaits measuring.

mod blocks;
mod measure;
mod numbers;
mod render;
mod results;
#[cfg(test)]
mod tests;

use std::fs;
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::ended::Ended;
use crate::job::{Failure, Log};
use crate::workspace;

use render::Tables;
use results::Results;

/// The pages that have figures.
const PAGES: &[&str] = &[
    "README.md",
    "docs/PERFORMANCE.md",
    "docs/lab-statistics.md",
    "docs/codec-study.md",
    "docs/codegen.md",
    "docs/json-study.md",
    "docs/load.md",
    "docs/published.md",
    "docs/security.md",
    "docs/tls.md",
    "docs/tonic.md",
];

/// What a table must say while its results files are missing.
const AWAITS: &str = "Awaits measuring";

/// `cargo xtask figures [--check | --list | --measure [NAME]... | --take NAME RESULTS.json]`.
pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, Ended> {
    let (checks, lists) = (arguments.flag("--check"), arguments.flag("--list"));
    let (measures, takes) = (arguments.flag("--measure"), arguments.flag("--take"));
    let names = arguments.rest();
    if measures {
        measure::run(&names)?;
    } else if takes {
        let [name, study] = names.as_slice() else {
            let misuse = "--take takes a measurement's name and the `results.json` of a study".to_owned();
            return Err(crate::arguments::Misuse(misuse).into());
        };
        measure::take(name, study.as_ref())?;
    } else if let Some(name) = names.first() {
        let misuse = format!("`{name}` is not understood here; `--measure {name}` measures it");
        return Err(crate::arguments::Misuse(misuse).into());
    }
    if lists {
        list()?;
    } else if checks {
        check()?;
        println!("the pages have the figures of docs/results");
    } else {
        regenerate()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages' tables anew.
pub(crate) fn regenerate() -> Result<(), Failure> {
    let tables = tables()?;
    for page in PAGES {
        let path = workspace::root().join(page);
        let text = fs::read_to_string(&path)?;
        let fresh = rendered(page, &text, &tables)?;
        if fresh != text {
            fs::write(&path, fresh)?;
            println!("{page} is written anew");
        }
    }
    Ok(())
}

/// The pages are what [`regenerate`] would make of them.
fn check() -> Result<(), Failure> {
    let tables = tables()?;
    for page in PAGES {
        let text = fs::read_to_string(workspace::root().join(page))?;
        if rendered(page, &text, &tables)? != text {
            let why = format!("{page} has other figures than docs/results: run `cargo xtask figures`");
            return Err(Failure::failed(why));
        }
    }
    Ok(())
}

fn tables() -> Result<Tables, Failure> {
    let costs = serde_json::from_str(&fs::read_to_string(workspace::root().join("xtask/costs.json"))?);
    let costs = costs.map_err(|why| Failure::failed(format!("xtask/costs.json is not JSON: {why}")))?;
    Tables::of(&Results::read()?, &costs)
}

/// The page with its tables as the results files have them.
fn rendered(page: &str, text: &str, tables: &Tables) -> Result<String, Failure> {
    let figure = |name: &str, body: &str| match tables.render(name) {
        Err(_) if body.contains(AWAITS) => Ok(body.to_owned()),
        made => made,
    };
    blocks::replaced(text, figure).map_err(|why| match why {
        blocks::Broken::Marks(why) => Failure::failed(format!("{page}: {why}")),
        blocks::Broken::Figure(failure) => Failure::failed(format!("{page}: {failure}")),
    })
}

/// Each measurement, of which commit it is, and how many commits have changed since then what it measures.
fn list() -> Result<(), Failure> {
    let results = Results::read()?;
    let log = Log::create("figures-list")?;
    for measurement in measure::MEASUREMENTS {
        let of = match results.provenance(measurement.name) {
            None => "not measured".to_owned(),
            Some(provenance) => {
                let since = measure::commits_since(&provenance.commit, measurement.subject, &log)?;
                format!("{}, commit {}, {since} commits ago", provenance.date, provenance.commit)
            }
        };
        println!("{:<30} {of:<44} {}", measurement.name, measurement.command());
    }
    Ok(())
}
