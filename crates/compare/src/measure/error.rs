//! Errors of a measurement.

use std::io;

use super::checkout::CheckoutError;
use super::target::{Target, TargetError};
use crate::compare::NotComparable;

/// Why a measurement cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A server's address is unknown.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Both servers have the same address.
    #[error(
        "both servers run at the same time and cannot both listen on {0}; use --a-target and --b-target, or {{port}} \
         in their commands"
    )]
    OneTarget(Target),
    /// A revision cannot be checked out.
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    /// There is no current folder.
    #[error("failed to read the current folder: {0}")]
    Folder(io::Error),
    /// The address is in use, so another program would be measured.
    #[error("the address {target} of {name} is already in use; stop that process or use another address")]
    Taken {
        /// Name of the side.
        name: String,
        /// Address.
        target: String,
    },
    /// A server did not start listening.
    #[error("the server of {name}, `{command}`, does not listen at {target}: {why}")]
    Start {
        /// Name of the side.
        name: String,
        /// Its command.
        command: String,
        /// Expected address.
        target: String,
        /// The reason, or the last lines of its output.
        why: String,
    },
    /// A server exited on its own.
    #[error("the server of {name} exited during the measurement: {why}")]
    Ended {
        /// Name of the side.
        name: String,
        /// Exit status and the last lines of its output.
        why: String,
    },
    /// The client returned no result.
    #[error("the load on {name} failed: {why}")]
    Client {
        /// Name of the side.
        name: String,
        /// Its output.
        why: String,
    },
    /// A revision could not be built.
    #[error("`{command}` failed for {name}: {why}")]
    Build {
        /// Name of the revision.
        name: String,
        /// Build command.
        command: String,
        /// The last lines of its output.
        why: String,
    },
    /// There are no calls to compare.
    #[error("no round has successful calls on both sides; see the errors with --save")]
    NoCalls,
    /// Sides are not comparable.
    #[error(transparent)]
    Refused(#[from] NotComparable),
    /// Interrupted before both servers were measured.
    #[error("interrupted before a round was complete")]
    NoRound,
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl MeasureError {
    /// Returns whether the arguments are at fault.
    pub fn is_misuse(&self) -> bool {
        matches!(self, Self::Target(_) | Self::OneTarget(_) | Self::Checkout(CheckoutError::Unknown(_)))
    }

    /// Returns whether the user asked to stop.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, Self::Interrupted | Self::NoRound)
    }
}
