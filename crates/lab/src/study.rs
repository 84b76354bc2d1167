//! Engine of all studies: plan → windows in rounds → record → save → analyse → report.
//!
//! A study is data. Its grid becomes a [`Plan`]: windows in the order of measuring, with compared windows close in
//! time (in rounds). [`conduct`] measures them with an [executor](Execute), which prints nothing. It adds each outcome
//! to the study's [results](StudyResults) and saves them along the way, so they survive an early end. The results are
//! [analysed](Analyse::analyse) once, and every exporter writes that analysis.
//!
//! ```text
//! Options ──plan──▶ Plan<Window> ──conduct──▶ Results ──analyse──▶ Analysis ──Exporter──▶ page, CSV, terminal
//!                                  │   ▲        │
//!                                  │   └ Found  └▶ results.json
//!                                  ▼
//!                               Execute
//! ```
//!
//! Each study has a folder under `studies/` with its plan, analysis and page sections. If its windows measure
//! something new, it also has an executor and result tables. Studies of calls (sizes, channels) share both:
//! [`crate::load`].

mod conduct;
pub(crate) mod directory;
pub(crate) mod draft;
mod plan;
mod results;
pub(crate) mod rounds;

use crate::report::Report;

pub(crate) use conduct::ExecuteError;
pub use conduct::{Conducted, CutShort, Execute, Observe, conduct};
pub(crate) use directory::NotWritable;
pub use directory::ResultsDirectory;
pub(crate) use directory::{ReadError, ResultsText};
pub(crate) use plan::PlanError;
pub use plan::{Plan, Window};
pub use results::{LeftOut, StudyKind, StudyResults, StudyTables, WindowOutcome};
pub(crate) use results::{SavedResults, timestamp};

/// Results that can be analysed.
pub trait Analyse {
    /// Derives everything that exporters show.
    fn analyse(&self) -> Report;
}
