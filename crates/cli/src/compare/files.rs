//! Earlier results, in files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use thalweg_compare::{Input, Options, Report, Side, SideError, Together, compare, read};

use super::verdict::{Inconclusive, verdict};
use crate::failure::Failure;

/// What is said of files.
#[derive(Debug, Args)]
pub(super) struct FileArgs {
    /// Result files or folders: A (the base) first, then B
    ///
    /// Several runs of one side: FILE,FILE,... or a folder. A --save file already has both sides.
    #[arg(value_name = "FILES")]
    sides: Vec<String>,

    /// In results of `thalweg lab --against`: the stack to compare (B)
    #[arg(long, value_name = "STACK", requires = "to")]
    of: Option<String>,

    /// In results of `thalweg lab --against`: the base (A)
    #[arg(long, value_name = "STACK", requires = "of")]
    to: Option<String>,
}

impl FileArgs {
    /// Whether files are compared.
    pub(super) fn is_asked_for(&self) -> bool {
        !self.sides.is_empty() || self.of.is_some()
    }
}

/// Compares them.
pub(super) fn run(
    args: &FileArgs,
    names: &[String],
    options: &Options,
    inconclusive: Inconclusive,
    write: impl FnOnce(&[Report]) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    let (sides, together) = sides(args, names)?;
    let (a, others) = sides.split_first().expect("there are two sides at least");
    let compared = others.iter().map(|b| compare(a, b, together, options));
    let reports = compared.collect::<Result<Vec<Report>, _>>().map_err(Failure::bad_arguments)?;
    write(&reports)?;
    verdict(&reports, inconclusive)
}

/// Two or more, and whether their rounds are pairs.
fn sides(args: &FileArgs, names: &[String]) -> Result<(Vec<Side>, Together), Failure> {
    match args.sides.as_slice() {
        [] => Err(Failure::bad_arguments(
            "name two results to compare, or servers to measure with --a and --b (thalweg compare --help has examples)",
        )),
        [one] => {
            let input = read(Path::new(one)).map_err(Failure::failed)?;
            let mut sides = match (input, &args.of, &args.to) {
                (Input::Study(results), Some(of), Some(to)) => {
                    [Side::of_study(&results, to), Side::of_study(&results, of)]
                        .into_iter()
                        .collect::<Result<Vec<Side>, _>>()
                        .map_err(failure)?
                }
                (Input::Comparison(comparison), None, None) => Side::both(&comparison).into(),
                (Input::Study(_), ..) => {
                    return Err(Failure::bad_arguments(format!(
                        "{one} is one study; add another one, or choose two stacks with --of and --to"
                    )));
                }
                _ => {
                    return Err(Failure::bad_arguments(format!("{one} is one result; add another one")));
                }
            };
            name(&mut sides, names)?;
            Ok((sides, Together::Pairs))
        }
        several => {
            if args.of.is_some() {
                return Err(Failure::bad_arguments("--of and --to need exactly one study"));
            }
            let labels = labels(several);
            let mut sides = Vec::new();
            for (label, side) in labels.iter().zip(several) {
                let inputs = paths(side)?.into_iter().map(|path| {
                    let input = read(&path).map_err(Failure::failed)?;
                    Ok((path.display().to_string(), input))
                });
                let inputs = inputs.collect::<Result<Vec<_>, Failure>>()?;
                sides.push(Side::of(label, inputs).map_err(failure)?);
            }
            name(&mut sides, names)?;
            Ok((sides, Together::Apart))
        }
    }
}

fn failure(error: SideError) -> Failure {
    match error {
        SideError::Both(_) | SideError::NoStack { .. } => Failure::bad_arguments(error),
        SideError::Read(_) | SideError::Empty(_) => Failure::failed(error),
    }
}

fn name(sides: &mut [Side], names: &[String]) -> Result<(), Failure> {
    if names.is_empty() {
        return Ok(());
    }
    if names.len() != sides.len() {
        return Err(Failure::bad_arguments(format!(
            "--names has {} names for {} sides",
            names.len(),
            sides.len()
        )));
    }
    for (side, name) in sides.iter_mut().zip(names) {
        side.name.clone_from(name);
    }
    Ok(())
}

/// The files of a side.
fn paths(side: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = Vec::new();
    // A file may have commas in its name.
    let whole = Path::new(side);
    let parts: Vec<&Path> =
        if whole.exists() { vec![whole] } else { side.split(',').map(Path::new).collect() };
    for path in parts {
        if !path.is_dir() {
            paths.push(path.to_owned());
            continue;
        }
        let unreadable = |error| Failure::failed(format!("cannot read {}: {error}", path.display()));
        let mut inside = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            inside.push(entry.map_err(unreadable)?.path());
        }
        inside.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        if inside.is_empty() {
            return Err(Failure::failed(format!("{} has no *.json results", path.display())));
        }
        inside.sort_unstable();
        paths.append(&mut inside);
    }
    Ok(paths)
}

/// What sides are called: their file's name where these differ, and else what was written.
fn labels(sides: &[String]) -> Vec<String> {
    let short = |side: &String| {
        let path = Path::new(side.split(',').next().unwrap_or(side));
        let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
        name.map(|name| name.to_string_lossy().into_owned())
    };
    let short: Option<Vec<String>> = sides.iter().map(short).collect();
    let differ = |names: &Vec<String>| {
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len() == names.len()
    };
    short.filter(differ).unwrap_or_else(|| sides.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_called_as_their_files_where_these_differ() {
        let check = |sides: &[&str], expected: &[&str]| {
            let sides: Vec<String> = sides.iter().map(ToString::to_string).collect();
            assert_eq!(labels(&sides), expected);
        };
        check(&["a/main.json", "b/branch.json"], &["main", "branch"]);
        check(&["m1.json,m2.json", "b1.json,b2.json"], &["m1", "b1"]);
        check(&["a/run.json", "b/run.json"], &["a/run.json", "b/run.json"]);
    }
}
