//! `cargo xtask figures`: writes the tables of measured figures in the documents from the results files in
//! `docs/results`. Measuring commands write those files.
//!
//! A page has a table between `<!-- figures: NAME -->` and `<!-- /figures -->`; its template is
//! `xtask/figures/NAME.jinja`. If results files of a figure are missing, the page keeps its text, which must then say
//! that it awaits measuring. A few pages are figures as a whole, from the template `NAME-page.jinja`.

mod blocks;
mod measure;
pub(crate) mod numbers;
mod render;
mod results;
#[cfg(test)]
mod tests;

use std::fs;
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::failure::Result;
use crate::job::Job;
use crate::{files, log, workspace};

use render::Tables;
use results::Results;

/// The pages with figures.
const PAGES: &[&str] = &[
    "README.md",
    "docs/PERFORMANCE.md",
    "docs/lab-reference.md",
    "docs/protobuf-json-study.md",
    "docs/codegen.md",
    "docs/load.md",
    "docs/lab.md",
    "docs/python.md",
    "docs/security.md",
    "docs/tls.md",
    "docs/tonic.md",
];

/// Pages that are figures as a whole, and the measurement of each. A page is written once its results file exists.
const FIGURE_PAGES: &[(&str, &str)] = &[("docs/results/fleet.md", "fleet")];

/// Required text of a table whose results files are missing.
const AWAITING_RESULTS: &str = "Awaits measuring";

/// `cargo xtask figures [--check | --list | --measure [NAME]... | --take NAME RESULTS.json]`.
pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let (checks, lists) = (arguments.flag("--check"), arguments.flag("--list"));
    let (measures, takes) = (arguments.flag("--measure"), arguments.flag("--take"));
    let names = arguments.rest();
    match names.as_slice() {
        _ if measures => measure::run(&names)?,
        [name, study] if takes => measure::import(name, study.as_ref())?,
        _ if takes => {
            return Err(misuse!("--take needs a measurement's name and the `results.json` of a study"));
        }
        [name, ..] => {
            return Err(misuse!("unexpected argument `{name}`; use `--measure {name}` to measure it"));
        }
        [] => {}
    }
    if lists {
        list()?;
    } else if checks {
        check()?;
        println!("the pages match docs/results");
    } else {
        regenerate()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the tables of all pages again.
pub(crate) fn regenerate() -> Result<()> {
    for (page, fresh) in changed()? {
        fs::write(workspace::root().join(page), fresh)?;
        println!("rewrote {page}");
    }
    Ok(())
}

/// Checks that the pages equal the output of [`regenerate`].
fn check() -> Result<()> {
    match changed()?.first() {
        Some((page, _)) => Err(failed!("{page} differs from docs/results; run `cargo xtask figures`")),
        None => Ok(()),
    }
}

/// Returns the outdated pages with their new text.
fn changed() -> Result<Vec<(&'static str, String)>> {
    let costs = files::json(&workspace::root().join("xtask/costs.json"))?;
    let results = Results::read()?;
    let tables = Tables::of(&results, &costs)?;
    let figure = |name: &str, body: &str| match tables.render(name) {
        Err(_) if body.contains(AWAITING_RESULTS) => Ok(body.to_owned()),
        made => made,
    };
    let mut changed = Vec::new();
    for page in PAGES {
        let text = fs::read_to_string(workspace::root().join(page))?;
        let fresh = blocks::replace_blocks(&text, figure).map_err(|why| failed!("{page}: {why}"))?;
        if fresh != text {
            changed.push((*page, fresh));
        }
    }
    for (page, name) in FIGURE_PAGES.iter().filter(|(_, name)| results.get(name).is_some()) {
        let fresh = tables.render(&format!("{name}-page"))?.trim().to_owned() + "\n";
        // A missing page is outdated, too.
        if fs::read_to_string(workspace::root().join(page)).unwrap_or_default() != fresh {
            changed.push((*page, fresh));
        }
    }
    Ok(changed)
}

/// Lists each measurement, its commit, and the number of later commits that changed the measured code.
fn list() -> Result<()> {
    log::start("figures-list")?;
    let results = Results::read()?;
    for measurement in measure::all()? {
        let of = match results.get(&measurement.name) {
            None => "not measured".to_owned(),
            Some(of) => {
                let words =
                    format!("rev-list --count {}..HEAD -- {}", of.commit, measurement.about.join(" "));
                let since = Job::new("git").words(&words).text()?;
                format!("{}, commit {}, {} commits ago", of.date, of.commit, since.trim())
            }
        };
        println!("{:<30} {of:<44} {}", measurement.name, measurement.command);
    }
    Ok(())
}
