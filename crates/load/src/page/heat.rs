//! Heat map of latencies over time. It shows stalls and bimodal latencies, which percentiles hide.

use serde::Serialize;
use thalweg_measure::distribution::Distribution;

use super::bins::Bins;
use crate::run::{Interval, LoadRun};

/// Maximum columns, so that each is some pixels wide. Adjacent intervals are merged beyond it.
const COLUMNS_MAX: usize = 240;
/// Target number of rows, and limits of rows per decade.
const ROWS: f64 = 56.0;
const ROWS_OF_A_DECADE: (f64, f64) = (8.0, 40.0);

#[derive(Debug, Serialize)]
pub(super) struct Heat {
    /// Starts of the columns and end of the last one, in s.
    edges: Vec<f64>,
    per_decade: u32,
    /// Lowest row, see [`Bins`].
    first: u32,
    rows: usize,
    /// Non-empty rows of each column, with their counts.
    columns: Vec<Vec<(usize, u64)>>,
}

/// Returns the heat map, or `None` if no interval has a histogram. `edges` are those of the intervals.
pub(super) fn heat(run: &LoadRun, edges: &[f64]) -> Option<Heat> {
    let (shortest_ns, longest_ns) = bounds(&run.intervals)?;
    let decades = (longest_ns.max(1) as f64 / shortest_ns.max(1) as f64).log10().max(0.1);
    let (least, most) = ROWS_OF_A_DECADE;
    let bins = Bins::between(shortest_ns, longest_ns, (ROWS / decades).clamp(least, most) as u32);
    let width = run.intervals.len().div_ceil(COLUMNS_MAX);
    let columns: Vec<Vec<(usize, u64)>> = run.intervals.chunks(width).map(|all| column(all, bins)).collect();
    let begins = edges[..run.intervals.len()].iter().step_by(width);
    (columns.iter().any(|column| !column.is_empty())).then(|| Heat {
        edges: begins.chain(edges.last()).copied().collect(),
        per_decade: bins.per_decade,
        first: bins.first,
        rows: bins.count,
        columns,
    })
}

/// Returns the shortest and the longest time.
fn bounds(intervals: &[Interval]) -> Option<(u64, u64)> {
    let all = || intervals.iter().filter_map(|interval| interval.latency_ns);
    Some((all().map(|ns| ns.min).min()?, all().map(|ns| ns.max).max()?))
}

fn column(intervals: &[Interval], bins: Bins) -> Vec<(usize, u64)> {
    let mut all: Option<Distribution> = None;
    for latencies in intervals.iter().filter_map(Interval::latencies) {
        match &mut all {
            Some(all) => all.merge(&latencies),
            None => all = Some(latencies),
        }
    }
    let counts = all.map_or_else(Vec::new, |all| bins.counts(&all));
    counts.into_iter().enumerate().filter(|(_, count)| *count > 0).collect()
}
