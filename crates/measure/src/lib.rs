//! Shared code of the measuring crates: statistics, number formatting, child processes and report pages.
//!
//! - [`distribution`], [`histogram`], [`cpu_time`] and [`statistics`]: latencies, CPU time, and ratios with intervals.
//! - [`figures`], [`wording`], [`size`] and [`code`]: format values as text.
//! - [`page`] and [`text`]: single-file HTML reports and terminal output.
//! - [`cpus`], [`machine`], [`descriptors`] and [`kernel`]: CPU lists, a description of the machine, its limits, and
//!   counts of open connections.
//! - [`target`] and [`measured`]: addresses of servers, and windows of studies for comparisons.
//! - [`process`], [`usage`], [`programs`] and [`validity`]: child processes, resource usage, what else ran, and whether
//!   figures may be used.
//! - [`interrupt`] and [`shards`]: signals, and per-thread recording.
//! - [`replacement`], [`folder`]: atomic file replacement, and the results in a folder.
//!
//! This crate makes no RPCs and does not depend on any study.
//!
//! ```
//! use thalweg_measure::statistics::Ratio;
//!
//! // Calls per second of two stacks, measured in adjacent windows.
//! let pairs = [(1020.0, 498.0), (990.0, 505.0), (1008.0, 500.0), (1001.0, 497.0)];
//! let ratio = Ratio::of_pairs(pairs).ok_or("no pair")?;
//! let interval = ratio.interval.ok_or("too few pairs")?;
//! assert!(interval.contains(2.0) && interval.low > 1.9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Only the command writes to stdout and stderr.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

#[cfg(not(target_os = "linux"))]
compile_error!("thalweg-measure supports Linux only");

pub mod code;
pub mod cpu_time;
pub mod cpus;
pub mod descriptors;
pub mod distribution;
pub mod figures;
pub mod folder;
pub mod histogram;
pub mod interrupt;
pub mod kernel;
pub mod machine;
pub mod measured;
pub mod page;
pub mod process;
pub mod programs;
pub mod replacement;
pub mod shards;
pub mod size;
pub mod statistics;
pub mod target;
pub mod text;
pub mod usage;
pub mod validity;
pub mod wording;

pub use thalweg_protobuf::printable;
