//! How a command ends that has no result.

use crate::arguments::Misuse;
use crate::job::Failure;

/// Why a command ended before it had a result.
pub(crate) enum Ended {
    Misuse(Misuse),
    Failure(Failure),
}

impl From<Misuse> for Ended {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}
