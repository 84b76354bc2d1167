//! What studies of calls share: points, windows, who measures them, and the schema `thalweg.lab/2` of what was found.

pub(crate) mod doubts;
mod draft;
pub(crate) mod facts;
mod found;
pub(crate) mod gathered;
mod kind;
pub(crate) mod noise;
pub(crate) mod paired;
mod point;
mod results;
mod strategy;
pub(crate) mod table;
mod window;

pub(crate) use draft::{Draft, fitted, in_rounds};
pub use found::{Found, Idle, Measured, ProcessUsage, SystemCalls, Usage, Wire};
pub(crate) use kind::Kind;
pub use point::{Pattern, Point, Transport, Work};
pub use results::{
    AaResult, LAB_SCHEMA, LabResults, LeftOut, Outcome, PointResult, Settings, Setup, StackInfo, StudyKind,
    SystemCallsOutcome, SystemCallsResult, WireOutcome, WireResult,
};
pub use strategy::Strategy;
pub use window::{Label, Purpose, Window};
