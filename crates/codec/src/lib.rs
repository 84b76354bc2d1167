//! Codecs beside each other: the messages of the lab's codec study, and who converts them.
//!
//! The study itself (its plan, its results, its report) is [`thalweg_lab::codec`]; this crate is the bench that it is
//! given. All the codecs that are compared are dependencies of this crate alone.

pub mod allocations;
mod bench;
mod codecs;
mod converter;
mod generate;
mod instructions;
mod own;
mod plain;
mod shapes;
mod sizes;

pub use bench::Codecs;
pub use converter::NotConverted;
pub use instructions::{CountError, count_here, count_under_callgrind};
pub use own::{OwnData, OwnDataError, Place};
