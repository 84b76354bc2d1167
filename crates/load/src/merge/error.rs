//! Errors of merging runs.

use crate::parts::PartsError;
use crate::run::SCHEMA;

/// Reason why runs cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There are no runs.
    #[error("no run to merge")]
    Nothing,
    /// A file of another kind or version.
    #[error("run {number} has schema `{schema}`, expected {SCHEMA}")]
    Schema {
        /// Number of the run, from 1.
        number: usize,
        /// Its schema.
        schema: String,
    },
    /// Runs that differ in a property.
    #[error("run {number} has a different {what}: {other}; the first has {one}")]
    Different {
        /// Number of the run, from 1.
        number: usize,
        /// The property.
        what: &'static str,
        /// Value of the first run.
        one: String,
        /// Value of this run.
        other: String,
    },
    /// The same run twice, alone or within a merged one.
    #[error("runs {earlier} and {number} contain the same run, which would count twice; name it once")]
    Twice {
        /// Number of the run, from 1.
        number: usize,
        /// Number of the other run that contains it, from 1.
        earlier: usize,
    },
    /// A merged run next to others that it may contain.
    #[error(
        "run {number} is itself a merge of {of} runs, which may count twice; merge either only original results or \
         only merged ones"
    )]
    Joined {
        /// Number of the run, from 1.
        number: usize,
        /// Number of runs merged in it.
        of: u64,
    },
    /// Parts of different loads.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// An invalid time, or a distribution without its histogram.
    #[error("failed to merge run {number}: invalid {what}")]
    Damaged {
        /// Number of the run, from 1.
        number: usize,
        /// The damaged part.
        what: &'static str,
    },
}
