//! Compares loads: result files, or two servers measured in alternating rounds.
//!
//! A [`Side`] holds the measurements of A or B as [cells](Cell): loads under the same [`Conditions`], in one or more
//! rounds. [`compare`] pairs the cells, rejects those that are not comparable, and returns a [`Report`]: a ratio, an
//! interval and a [`Verdict`] for each [`Figure`].
//!
//! Sides come from result [files](read()) or from [`measure()`], which starts two servers and alternates between them,
//! so that machine noise affects both. It returns a [`Comparison`].
//!
//! ```text
//! files ──read──▶ Input ─┐
//!                        ├▶ Side, Side ──compare──▶ Report ──▶ text, Markdown, a page, JSON
//! measure ──▶ Comparison ┘
//! ```
//!
//! Compares two results of `thalweg load -O json`:
//!
//! ```no_run
//! use std::error::Error;
//! use std::path::Path;
//! use thalweg_compare::{Options, Pairing, Side, compare, read, text};
//!
//! fn side(name: &str, file: &str) -> Result<Side, Box<dyn Error>> {
//!     Ok(Side::of_inputs(name, vec![(file.to_owned(), read(Path::new(file), |_| Err("no load".to_owned()))?)])?)
//! }
//!
//! let (before, after) = (side("before", "before.json")?, side("after", "after.json")?);
//! // Differences up to 5 % are ignored.
//! let options = Options { margin: 0.05, fail_on: None, force: false };
//! let report = compare(&before, &after, Pairing::Unpaired, &options)?;
//! print!("{}", text(&report));
//! # Ok::<(), Box<dyn Error>>(())
//! ```

// Only the command prints.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod baseline;
mod cell;
mod compare;
mod comparison;
mod difference;
mod failed_shares;
mod figure;
mod files;
mod measure;
mod read;
mod report;
mod side;
mod verdict;

pub use baseline::{compare_with_baseline, gates};
pub use cell::{Calls, Cell, Conditions, Figures, Round};
pub use compare::{NotComparable, Options, Pairing, compare};
pub use comparison::{Comparison, MeasuredSide, Revision, SCHEMA, Settings, SideId, WindowResult, WindowRun};
pub use difference::Difference;
pub use failed_shares::FailedShares;
pub use figure::{Figure, UnknownFigure};
pub use files::StackPair;
pub use measure::{
    CheckoutError, Event, MeasureError, MeasureOutcome, Plan, Servers, SidePlan, Target, TargetError, measure,
};
pub use read::{Input, ReadError, ReadStudy, read};
pub use report::{
    CellReport, FigureComparison, Intervals, REPORT_SCHEMA, Report, csv::csv, html::page, json::json,
    markdown::markdown, text::text,
};
pub use side::{Side, SideError};
pub use verdict::Verdict;
