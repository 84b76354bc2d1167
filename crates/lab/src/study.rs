//! The engine of all studies: plan → windows in rounds → record → save as it comes → analyse → report.
//!
//! A study is data. Its grid becomes a [`Plan`]: windows in the order of measuring, what is compared side by side in
//! time (in rounds). [`conduct`] measures one after the other with an [executor](Execute), which prints nothing, and
//! hands what came of each to the study's [results](StudyResults), which are saved on the way, whatever ends the study.
//! The results are [analysed](Analyse::analyse) once, and the analysis is what every exporter writes down.
//!
//! ```text
//! Options ──plan──▶ Plan<Window> ──conduct──▶ Results ──analyse──▶ Analysis ──Exporter──▶ page, CSV, terminal
//!                                  │   ▲        │
//!                                  │   └ Found  └▶ results.json
//!                                  ▼
//!                               Execute
//! ```
//!
//! What differs from study to study is in its folder under `studies/`: the plan from its options, its analysis, and
//! its sections of the page; and, where a window measures something new, an executor and tables of results. The
//! studies of calls (sizes, channels) share both: [`crate::load`].

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
    /// Everything that any exporter shows, told from the results once.
    fn analyse(&self) -> Report;
}
