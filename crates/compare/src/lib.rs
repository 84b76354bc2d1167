//! Compares loads: earlier results in files, or two servers that are measured in turns.
//!
//! A [`Side`] is what was measured of A or of B: [cells](Cell), which are loads under the same [`Conditions`], each
//! measured in one or more rounds. [`compare`] puts the cells of two sides beside each other, refuses what is not
//! comparable, and makes a [`Report`]: for each [`Figure`] a ratio, its interval and a [`Verdict`].
//!
//! Sides come from [files](read()), of whatever load wrote them, or from [`measure()`], which starts two servers and
//! drives them in turns, so that each round is a pair: what slows the machine slows both. It leaves a [`Comparison`].
//!
//! ```text
//! files ──read──▶ Input ─┐
//!                        ├▶ Side, Side ──compare──▶ Report ──▶ text, Markdown, a page, JSON
//! measure ──▶ Comparison ┘
//! ```
//!
//! Two results that `thalweg load -O json` has written:
//!
//! ```no_run
//! use std::error::Error;
//! use std::path::Path;
//! use thalweg_compare::{Options, Side, Together, compare, read, text};
//!
//! fn side(name: &str, file: &str) -> Result<Side, Box<dyn Error>> {
//!     Ok(Side::of(name, vec![(file.to_owned(), read(Path::new(file))?)])?)
//! }
//!
//! let (before, after) = (side("before", "before.json")?, side("after", "after.json")?);
//! // What lies within 5 % is the same.
//! let options = Options { margin: 0.05, fail_on: None, force: false };
//! let report = compare(&before, &after, Together::Apart, &options)?;
//! print!("{}", text(&report));
//! # Ok::<(), Box<dyn Error>>(())
//! ```

// The command prints, by one way.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod cell;
mod compare;
mod comparison;
mod figure;
mod measure;
mod obstacle;
mod read;
mod report;
mod side;
mod verdict;

pub use cell::{Cell, Conditions, Figures, Round};
pub use compare::{Options, Refused, Together, compare};
pub use comparison::{Comparison, MeasuredSide, Revision, SCHEMA, Settings, Which, WindowResult, WindowRun};
pub use figure::{Figure, UnknownFigure};
pub use measure::{
    Checkout, CheckoutError, Event, FreePorts, MeasureError, Measured, Plan, Repository, SidePlan, Target,
    TargetError, build, measure,
};
pub use obstacle::Obstacle;
pub use read::{Input, ReadError, read};
pub use report::{
    CellReport, Compared, REPORT_SCHEMA, Report, html::page, json::json, markdown::markdown, text::text,
};
pub use side::{Side, SideError};
pub use verdict::Verdict;
