//! Measurements of one side.

use thalweg_measure::machine::{Machine, Versions};
use thalweg_measure::measured::MeasuredStudy;

use crate::cell::Cell;
use crate::comparison::{Comparison, MeasuredSide, SideId};
use crate::read::{Input, ReadError, SideInput};

/// Number of shown digits of a commit's hash.
const COMMIT_DIGITS: usize = 12;

/// Measurements of A or B.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Name in reports.
    pub name: String,
    /// Loads with different conditions.
    pub cells: Vec<Cell>,
    /// Machines that measured them; several if they differ.
    pub machines: Vec<Machine>,
    /// Whether a part does not record its machine.
    pub has_unknown_machine: bool,
    /// Versions of the programs, if known.
    pub versions: Option<Versions>,
    /// Warnings for the reader.
    pub notes: Vec<String>,
    /// Files or server.
    pub origin: String,
}

/// Inputs that do not make a side.
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
    #[error("{0} already has both sides; use it alone")]
    Both(String),
    /// An input has no measurements.
    #[error("{0} has no measurements")]
    Empty(String),
    /// A study has no such pair of client and server.
    #[error("no `{wanted}` in the study; use one of {known}")]
    NoStack {
        /// Requested pair.
        wanted: String,
        /// Pairs in the study.
        known: String,
    },
}

impl SideError {
    /// Returns whether the arguments are at fault.
    pub fn is_misuse(&self) -> bool {
        matches!(self, Self::Misuse(_) | Self::Both(_) | Self::NoStack { .. })
    }
}

impl Side {
    /// Creates a side from inputs with their names. Inputs with the same conditions become rounds of one cell.
    ///
    /// # Errors
    ///
    /// Returns an error for a comparison, which has two sides, and for an input without measurements.
    pub fn of_inputs(name: &str, inputs: Vec<(String, Input)>) -> Result<Self, SideError> {
        let mut side = Self::new(name, origin_of_files(&inputs));
        for (source, input) in inputs {
            let part = input.into_side_input().ok_or_else(|| SideError::Both(source.clone()))?;
            if part.cells.is_empty() {
                return Err(SideError::Empty(source));
            }
            side.add(part);
        }
        Ok(side)
    }

    /// Returns both sides of a comparison.
    pub fn both_of_comparison(comparison: &Comparison) -> [Self; 2] {
        [(SideId::A, &comparison.a), (SideId::B, &comparison.b)].map(|(which, measured)| {
            let mut side = Self::new(&measured.name, origin_of_server(measured));
            side.add(SideInput::of_comparison(comparison, which));
            side
        })
    }

    /// Returns a stack's windows of a study, as one of two sides whose rounds are pairs.
    ///
    /// # Errors
    ///
    /// Returns an error if the study lacks this stack or `CLIENT → SERVER` pair.
    pub fn of_study(results: &MeasuredStudy, stack: &str) -> Result<Self, SideError> {
        let mut side = Self::new(stack, format!("the windows of {stack} in a study"));
        let part = SideInput::of_study(results, Some(stack));
        if part.cells.is_empty() {
            let mut known: Vec<String> = results.cells.iter().filter_map(|cell| cell.pair.clone()).collect();
            known.sort_unstable();
            known.dedup();
            return Err(SideError::NoStack { wanted: stack.to_owned(), known: known.join(", ") });
        }
        side.add(part);
        Ok(side)
    }

    /// Returns this side without rounds that something other than the server affected.
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

    fn add(&mut self, part: SideInput) {
        for cell in part.cells {
            match self.cells.iter_mut().find(|known| known.conditions == cell.conditions) {
                Some(known) => {
                    if let Some((first, other)) = known.differing_request_sizes(&cell) {
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

fn origin_of_files(inputs: &[(String, Input)]) -> String {
    match inputs {
        [] => String::new(),
        [(one, _)] => one.clone(),
        [(first, _), .., (last, _)] => format!("{} files, {first} to {last}", inputs.len()),
    }
}

fn origin_of_server(measured: &MeasuredSide) -> String {
    let revision = measured.revision.as_ref().map(|revision| {
        let build = revision.build.as_ref().map(|build| format!(", built by {build}")).unwrap_or_default();
        let commit: String = revision.commit.chars().take(COMMIT_DIGITS).collect();
        format!("; revision {}, commit {commit}{build}", revision.name)
    });
    format!("{} at {}{}", measured.command, measured.target, revision.unwrap_or_default())
}
