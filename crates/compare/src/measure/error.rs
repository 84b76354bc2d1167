//! What keeps a comparison from being measured.

use std::io;

use super::checkout::CheckoutError;
use super::target::{Target, TargetError};
use crate::compare::Refused;

/// Why it cannot begin, or go on.
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
    #[error("cannot read the current folder: {0}")]
    Folder(io::Error),
    /// Another program would be measured.
    #[error(
        "{target} is already in use, and {name} should listen there; stop that process, or use another address"
    )]
    Taken {
        /// Which side.
        name: String,
        /// Where.
        target: String,
    },
    /// A server never came to listen.
    #[error("the server of {name}, `{command}`, does not listen at {target}: {why}")]
    Start {
        /// Which side.
        name: String,
        /// Its command.
        command: String,
        /// Where it was to listen.
        target: String,
        /// Why it does not, or the end of what it said.
        why: String,
    },
    /// A server ended by itself.
    #[error("the server of {name} ended while it was measured: {why}")]
    Ended {
        /// Which side.
        name: String,
        /// How, and the end of what it said.
        why: String,
    },
    /// The client did not say what it found.
    #[error("the load on {name} failed: {why}")]
    Client {
        /// Which side.
        name: String,
        /// What it said.
        why: String,
    },
    /// A revision could not be built.
    #[error("`{command}` failed for {name}: {why}")]
    Build {
        /// Which revision.
        name: String,
        /// What was to build it.
        command: String,
        /// The end of what it said.
        why: String,
    },
    /// There are no calls to compare.
    #[error("no round has successful calls on both sides; see the errors with --save")]
    NoCalls,
    /// Sides are not comparable.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Interrupted before both servers were measured.
    #[error("interrupted before a round was complete")]
    NoRound,
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl MeasureError {
    /// Returns whether other arguments would help.
    pub fn is_misuse(&self) -> bool {
        matches!(self, Self::Target(_) | Self::OneTarget(_) | Self::Checkout(CheckoutError::Unknown(_)))
    }

    /// Returns whether the user asked to stop.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, Self::Interrupted | Self::NoRound)
    }
}
