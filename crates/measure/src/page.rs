//! HTML reports: single files that load no external resources.

pub mod charts;
pub mod frame;
pub mod parts;
