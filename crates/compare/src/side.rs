//! What was measured of one side.

use thalweg_measure::machine::{Machine, Versions};
use thalweg_measure::measured::MeasuredStudy;

use crate::cell::Cell;
use crate::comparison::{Comparison, MeasuredSide, Which};
use crate::read::{Input, Part, ReadError};

/// Of a commit's hash so many are shown.
const COMMIT_DIGITS: usize = 12;

/// What was measured of A, or of B.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// What it is called in reports.
    pub name: String,
    /// Loads, each under other conditions.
    pub cells: Vec<Cell>,
    /// Where they were measured; more than one where machines differ.
    pub machines: Vec<Machine>,
    /// Something of it does not say where it was measured.
    pub has_unknown_machine: bool,
    /// With what, where that is known.
    pub versions: Option<Versions>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// Which files, or which server.
    pub origin: String,
}

/// What makes no side.
#[derive(Debug, thiserror::Error)]
pub enum SideError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The arguments do not name two sides.
    #[error("{0}")]
    Misuse(String),
    /// A folder cannot be read, or has no results.
    #[error("{0}")]
    Folder(String),
    /// Both sides are in one file.
    #[error("{0} already has both sides; pass it alone")]
    Both(String),
    /// There is nothing in it.
    #[error("{0} has no measurements")]
    Empty(String),
    /// A study has no such pair of client and server.
    #[error("the study has no `{wanted}`: it has {known}")]
    NoStack {
        /// What was asked for.
        wanted: String,
        /// What there is.
        known: String,
    },
}

impl SideError {
    /// Returns whether other arguments would help.
    pub fn is_misuse(&self) -> bool {
        matches!(self, Self::Misuse(_) | Self::Both(_) | Self::NoStack { .. })
    }
}

impl Side {
    /// Inputs with their names, which become rounds of the same side where their conditions are the same.
    ///
    /// # Errors
    ///
    /// For a comparison, which is two sides, and for inputs with nothing in them.
    pub fn of(name: &str, inputs: Vec<(String, Input)>) -> Result<Self, SideError> {
        let mut side = Self::new(name, of_files(&inputs));
        for (source, input) in inputs {
            let part = input.part().ok_or_else(|| SideError::Both(source.clone()))?;
            if part.cells.is_empty() {
                return Err(SideError::Empty(source));
            }
            side.add(part);
        }
        Ok(side)
    }

    /// Both sides of a comparison.
    pub fn both(comparison: &Comparison) -> [Self; 2] {
        [(Which::A, &comparison.a), (Which::B, &comparison.b)].map(|(which, measured)| {
            let mut side = Self::new(&measured.name, of_server(measured));
            side.add(Part::of_comparison(comparison, which));
            side
        })
    }

    /// A stack's windows of a study, as one side of two whose rounds are pairs.
    ///
    /// # Errors
    ///
    /// For a stack, or `CLIENT → SERVER`, that the study does not have.
    pub fn of_study(results: &MeasuredStudy, stack: &str) -> Result<Self, SideError> {
        let mut side = Self::new(stack, format!("the windows of {stack} in a study"));
        let part = Part::of_study(results, Some(stack));
        if part.cells.is_empty() {
            let mut known: Vec<String> = results.cells.iter().filter_map(|cell| cell.pair.clone()).collect();
            known.sort_unstable();
            known.dedup();
            return Err(SideError::NoStack { wanted: stack.to_owned(), known: known.join(", ") });
        }
        side.add(part);
        Ok(side)
    }

    /// Returns the same side without the rounds that something other than the server shaped.
    pub(crate) fn undisturbed(&self) -> Self {
        let mut side = self.clone();
        side.cells.iter_mut().for_each(|cell| cell.rounds.retain(|round| !round.is_disturbed()));
        side
    }

    fn new(name: &str, origin: String) -> Self {
        Self {
            name: name.to_owned(),
            cells: Vec::new(),
            machines: Vec::new(),
            has_unknown_machine: false,
            versions: None,
            notes: Vec::new(),
            origin,
        }
    }

    fn add(&mut self, part: Part) {
        for cell in part.cells {
            match self.cells.iter_mut().find(|known| known.conditions == cell.conditions) {
                Some(known) => {
                    if let Some((first, other)) = known.other_requests(&cell) {
                        self.notes.push(format!(
                            "requests differ in size between runs ({first:.0} and {other:.0} bytes on average), but \
                             the runs count as rounds of one load"
                        ));
                    }
                    known.add(cell);
                }
                None => self.cells.push(cell),
            }
        }
        match part.machine {
            None => self.has_unknown_machine = true,
            Some(machine) => {
                if !self.machines.iter().any(|known| known.differences(&machine).is_empty()) {
                    self.machines.push(machine);
                }
            }
        }
        self.versions = part.versions.or(self.versions.take());
        self.notes.extend(part.notes);
    }
}

fn of_files(inputs: &[(String, Input)]) -> String {
    match inputs {
        [] => String::new(),
        [(one, _)] => one.clone(),
        [(first, _), .., (last, _)] => format!("{} files, {first} to {last}", inputs.len()),
    }
}

fn of_server(measured: &MeasuredSide) -> String {
    let revision = measured.revision.as_ref().map(|revision| {
        let build = revision.build.as_ref().map(|build| format!(", built by {build}")).unwrap_or_default();
        let commit: String = revision.commit.chars().take(COMMIT_DIGITS).collect();
        format!("; revision {}, commit {commit}{build}", revision.name)
    });
    format!("{} at {}{}", measured.command, measured.target, revision.unwrap_or_default())
}
