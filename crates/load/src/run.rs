//! Result of a run: [`LoadRun`] and its parts.

mod interval;
mod load_run;
mod search;
mod servers;
mod timing;

pub use interval::{Flows, Interval};
pub use load_run::{ConditionResult, EARLIER_SCHEMA, LoadRun, RunNote, SCHEMA, StepRun};
pub use search::{Search, Try};
pub use servers::{FurtherAttempts, ServerInterval, ServerRun};
pub use timing::Timing;
