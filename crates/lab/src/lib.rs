//! The laboratory: it measures RPC stacks and says what it saw.
//!
//! `plan -> drive -> record -> analyse -> report`, with plain values between them. A study is data; what drives it
//! never prints; what reports it never measures.
//!
//! [`published`] tries again what others measured, by those studies.
//!
//! [`study`] is the engine: it conducts any plan of windows, saves what is found, and has it analysed once. The
//! studies ([`sizes`], [`channels`], [`connections`], [`codec`], [`json`]) stand on it, each in a folder of its own
//! with its plan, its analysis, its findings and its sections of the page. What studies of calls share (points,
//! windows, their results, doubts) is [`load`]; who measures these windows is [`process`]. [`report`] writes any
//! analysis as a page, a table and text.
//!
//! What those processes run, the calls and their record, is a crate of its own, `thalweg-drive`; its modules are here,
//! too.
//!
//! What all of them stand on: two things are measured in turns, and their ratio is taken pair by pair.
//!
//! ```
//! use thalweg_lab::statistics::Ratio;
//!
//! // Calls a second of two stacks, in windows that stood next to each other.
//! let pairs = [(1020.0, 498.0), (990.0, 505.0), (1008.0, 500.0), (1001.0, 497.0)];
//! let ratio = Ratio::of_pairs(pairs).ok_or("no pair")?;
//! let interval = ratio.interval.ok_or("too few pairs")?;
//! assert!(interval.contains(2.0) && interval.low > 1.9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// The command prints, by one way.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod descriptors;
pub mod figures;
mod findings;
pub mod load;
pub mod peers;
pub mod process;
pub mod published;
mod replacement;
pub mod report;
pub mod size;
mod socket;
pub mod stack;
pub mod statistics;
mod studies;
pub mod study;
pub mod target;
#[cfg(test)]
mod tests;
mod usage;
pub mod wording;

pub use replacement::{Replacement, replace};
pub use studies::{AnyResults, channels, codec, connections, json, sizes};
pub use thalweg_drive::kernel::Established;
pub use thalweg_protobuf::printable;

pub use thalweg_drive::{bare, cpus, drive, echo, interrupt, record, services, shards};
pub use usage::processor_time;
