//! Reads sides from the result files named on a command line.

use std::path::{Path, PathBuf};

use thalweg_measure::folder::json_files;

use crate::compare::Pairing;
use crate::read::{Input, ReadStudy, read};
use crate::side::{Side, SideError};

/// Two stacks of one study.
#[derive(Clone, Copy, Debug)]
pub struct StackPair<'a> {
    /// The base, A.
    pub base: &'a str,
    /// The stack compared with it, B.
    pub compared: &'a str,
}

impl Side {
    /// Reads two or more sides, the base first, and returns whether their rounds are pairs.
    ///
    /// Each of `files` is a side: a file, several files separated by commas, or a folder. A single file contains both
    /// sides: a comparison, or a study in which `stacks` names two.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, or if the files do not make two sides.
    pub fn of_files(
        files: &[String],
        stacks: Option<StackPair<'_>>,
        study: ReadStudy,
    ) -> Result<(Vec<Self>, Pairing), SideError> {
        let misuse = |why: String| Err(SideError::Misuse(why));
        match (files, stacks) {
            ([], _) => misuse(
                "expected two results, or servers to measure with --a and --b; see thalweg compare --help for examples"
                    .to_owned(),
            ),
            ([one], _) => {
                let sides = match (read(Path::new(one), study)?, stacks) {
                    (Input::Study(results), Some(StackPair { base: to, compared: of })) => {
                        vec![Self::of_study(&results, to)?, Self::of_study(&results, of)?]
                    }
                    (Input::Comparison(comparison), None) => Self::both_of_comparison(&comparison).into(),
                    (Input::Study(_), None) => {
                        return misuse(format!(
                            "{one} is one study; add another one, or choose two stacks with --of and --to"
                        ));
                    }
                    _ => return misuse(format!("{one} is one result; add another one")),
                };
                Ok((sides, Pairing::Paired))
            }
            (_, Some(_)) => misuse("--of and --to need exactly one study".to_owned()),
            (several, None) => {
                let side = |(label, files): (&String, &String)| {
                    let inputs = paths(files)?.into_iter().map(|path| {
                        let input = read(&path, study)?;
                        Ok((path.display().to_string(), input))
                    });
                    Self::of_inputs(label, inputs.collect::<Result<Vec<_>, SideError>>()?)
                };
                let sides = labels(several).iter().zip(several).map(side).collect::<Result<_, _>>()?;
                Ok((sides, Pairing::Unpaired))
            }
        }
    }
}

/// Returns the files of a side.
fn paths(side: &str) -> Result<Vec<PathBuf>, SideError> {
    let mut paths = Vec::new();
    // A file name may contain commas.
    let whole = Path::new(side);
    let parts: Vec<&Path> =
        if whole.exists() { vec![whole] } else { side.split(',').map(Path::new).collect() };
    for path in parts {
        if !path.is_dir() {
            paths.push(path.to_owned());
            continue;
        }
        let unreadable = |error| SideError::Folder(format!("failed to read {}: {error}", path.display()));
        let files = json_files(path).map_err(unreadable)?;
        if files.is_empty() {
            return Err(SideError::Folder(format!("{} has no *.json results", path.display())));
        }
        paths.extend(files);
    }
    Ok(paths)
}

/// Returns names of sides: their file names if these differ, otherwise whole paths.
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
    fn sides_are_named_after_differing_files() {
        let check = |sides: &[&str], expected: &[&str]| {
            let sides: Vec<String> = sides.iter().map(ToString::to_string).collect();
            assert_eq!(labels(&sides), expected);
        };
        check(&["a/main.json", "b/branch.json"], &["main", "branch"]);
        check(&["m1.json,m2.json", "b1.json,b2.json"], &["m1", "b1"]);
        check(&["a/run.json", "b/run.json"], &["a/run.json", "b/run.json"]);
    }
}
