//! Measures RPC stacks and reports the results.
//!
//! `plan -> drive -> record -> analyse -> report`, with plain values in between. A study is data. Drivers never print,
//! and reports never measure.
//!
//! [`published`] repeats published measurements with these studies.
//!
//! [`study`] is the engine: it runs any plan of windows, saves the results and has them analysed once. Each study
//! ([`sizes`], [`channels`], [`connections`], [`codec`], [`json`]) is a folder with its plan, analysis, findings and
//! page sections. [`load`] has the parts that studies of calls share: points, windows, results and doubts. [`process`]
//! measures these windows. [`report`] writes any analysis as a page, a table and text.
//!
//! `thalweg-load` has the processes, with their services and clients. `thalweg-measure` has figures, statistics and
//! the frame of the page.
//!
//! ```no_run
//! use thalweg_lab::{AnyResults, report};
//!
//! let results = AnyResults::read("study/results.json".as_ref())?;
//! println!("{}", report::terminal(&results.analyse()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Only the command prints.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod findings;
pub mod load;
pub mod peers;
pub mod process;
pub mod published;
pub mod report;
mod socket;
pub mod stack;
pub mod stacks;
mod studies;
pub mod study;
#[cfg(test)]
mod tests;

pub use studies::{AnyResults, channels, codec, connections, json, sizes};
pub(crate) use thalweg_load::{echo, record};
