//! Plots on canvases, by uPlot: what a page needs to have in it for them.

/// The library itself: runs before all scripts of a page.
pub const LIBRARY: &str = include_str!("../../assets/uPlot.iife.min.js");
/// Its style.
pub const STYLE: &str = include_str!("../../assets/uPlot.min.css");
/// What its licence asks for.
pub const NOTICE: &str = " Charts by uPlot 1.6.32 (MIT licence, © 2022 Leon Sorokin).";
/// Colours, axes, what is told at the pointer, and whether lines have been drawn.
pub const SCRIPT: &str = include_str!("../../assets/charts.js");
/// Names of lines, where they end.
pub const ENDS: &str = include_str!("../../assets/ends.js");
