//! Report of a comparison, and its output formats.

pub(crate) mod csv;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod markdown;
mod model;
pub(crate) mod text;
mod words;

pub use json::REPORT_SCHEMA;
pub use model::{CellReport, FigureComparison, Intervals, Report};
