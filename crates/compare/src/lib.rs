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
