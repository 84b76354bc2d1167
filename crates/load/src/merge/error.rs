//! Why runs are not one.

use crate::parts::PartsError;
use crate::run::SCHEMA;

/// Why runs are not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There is nothing to join.
    #[error("no run to merge")]
    Nothing,
    /// A file of another kind, or of another version.
    #[error("run {number} has schema `{schema}`, expected {SCHEMA}")]
    Schema {
        /// Which one, from 1.
        number: usize,
        /// What it says.
        schema: String,
    },
    /// Runs of different things.
    #[error("run {number} has a different {what}: {other}; the first has {one}")]
    Different {
        /// Which one, from 1.
        number: usize,
        /// Of what.
        what: &'static str,
        /// The first one's.
        one: String,
        /// This one's.
        other: String,
    },
    /// The same run a second time, alone or within a merged one.
    #[error("runs {earlier} and {number} contain the same run, which would count twice; name it once")]
    Twice {
        /// Its number, from 1.
        number: usize,
        /// The number of the run that contains it as well, from 1.
        earlier: usize,
    },
    /// One that is joined already, beside others that may be in it.
    #[error(
        "run {number} is itself a merge of {of} runs, which may count twice; merge either only original results or \
         only merged ones"
    )]
    Joined {
        /// Which one, from 1.
        number: usize,
        /// Of how many runs it is joined.
        of: u64,
    },
    /// Parts that are not those of one load.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// A time that cannot be read, or a distribution without its histogram.
    #[error("run {number} cannot be merged: its {what} cannot be read")]
    Damaged {
        /// Which one, from 1.
        number: usize,
        /// Of what.
        what: &'static str,
    },
}
