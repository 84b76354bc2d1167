//! HTML reports: single files that load no external resources.
//!
//! A page is data: [sections](section::Section) of [blocks](section::Block), such as sentences, [tables](table::Table),
//! [charts](chart::Chart), [bars](bars::Bars) and [choices](section::Choice). One script draws all charts, and shows
//! the parts that match the reader's choices.

pub mod bars;
pub mod chart;
pub mod charts;
pub mod frame;
mod inline;
pub mod parts;
pub mod section;
pub mod statement;
pub mod table;
mod when;
