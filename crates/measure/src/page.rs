//! HTML reports: single files that load no external resources.

pub mod bars;
pub mod chart;
pub mod charts;
pub mod frame;
mod inline;
pub mod parts;
pub mod section;
pub mod table;
mod when;
