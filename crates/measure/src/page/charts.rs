//! Assets for charts drawn by uPlot on a canvas. A page embeds them.

/// The uPlot library. It must run before all other scripts of the page.
pub const LIBRARY: &str = include_str!("../../assets/uPlot.iife.min.js");
/// uPlot's style sheet.
pub const STYLE: &str = include_str!("../../assets/uPlot.min.css");
/// Notice that uPlot's licence requires in the footer.
pub const NOTICE: &str = " Charts by uPlot 1.6.32 (MIT licence, © 2022 Leon Sorokin).";
/// Script with shared colours, axes and tooltips. It also records which lines have been drawn.
pub const SCRIPT: &str = include_str!("../../assets/charts.js");
/// Script that labels each line at its right end.
pub const ENDS: &str = include_str!("../../assets/ends.js");
/// Script that draws a page's [`Chart`](super::chart::Chart)s and follows choices. It must run after the others.
pub const PLOTS: &str = include_str!("../../assets/plots.js");
