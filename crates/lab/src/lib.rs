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
//! The processes themselves, with the services and the clients that call them, are in `thalweg-load`. Figures,
//! statistics and the frame of the page are in `thalweg-measure`.
//!
//! ```no_run
//! use thalweg_lab::{AnyResults, report};
//!
//! let results = AnyResults::read("study/results.json".as_ref())?;
//! println!("{}", report::terminal(&results.analyse()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// The command prints, by one way.
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
