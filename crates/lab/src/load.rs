//! Points, windows, executors and result tables shared by all studies of calls.

pub(crate) mod condensed;
pub(crate) mod doubts;
mod draft;
pub(crate) mod facts;
pub(crate) mod gathered;
mod kind;
mod measured_cell;
mod measurement;
pub(crate) mod multiples;
pub(crate) mod noise;
pub(crate) mod paired;
mod point;
pub(crate) mod remarks;
pub(crate) mod report;
pub(crate) mod results;
pub(crate) mod stacks;
mod strategy;
pub(crate) mod table;
pub(crate) mod used;
pub(crate) mod validity;
pub(crate) mod verdict;
mod window;
mod window_result;

pub(crate) use draft::{Draft, planned};
pub(crate) use kind::Kind;
pub use measurement::WindowMeasurement;
pub(crate) use measurement::{IdleGaps, MeasuredLoad, SystemCalls, WireTraffic};
pub use point::Transport;
pub(crate) use point::{Pattern, Point, Work};
pub(crate) use results::PointResult;
pub use results::{CallsSettings, CallsTables, LabResults, StackInfo};
pub use strategy::Strategy;
pub use window::Window;
#[cfg(test)]
pub(crate) use window::WindowRequest;
pub(crate) use window::{AaSide, Purpose};
#[cfg(test)]
pub(crate) use window_result::Outcome;
pub(crate) use window_result::WindowResult;
