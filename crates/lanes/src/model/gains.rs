//! Helpers for the other grids' tables. In addition to `grid.txt`, each cell contains the best rate as a multiple of
//! that of one lane.

use std::fmt::Write;

use super::grid::Point;

pub(super) fn write_column_headers(table: &mut String, in_flight: &[usize]) {
    for in_flight in in_flight {
        write!(table, "{in_flight:>13} in flight").expect("writing to a String does not fail");
    }
    table.push('\n');
}

pub(super) fn write_cells<'a>(table: &mut String, row: impl IntoIterator<Item = &'a Point>) {
    for Point { best, lanes, share, .. } in row {
        let gain = best.calls_per_s / best.one_lane_calls_per_s;
        let cell = format!("{:>5} {lanes:>2}  {share:.3} {gain:>5.2} ×", best.lanes);
        write!(table, "{cell:>23}").expect("writing to a String does not fail");
    }
    table.push('\n');
}

/// Writes the last line. Returns how many points are within 5 % of the best fixed number of lanes.
pub(super) fn write_end(table: &mut String, points: &[Point]) -> usize {
    let within_5 = points.iter().filter(|point| point.share >= 0.95).count();
    writeln!(table, "\n{within_5} of {} points within 5 %", points.len())
        .expect("writing to a String does not fail");
    within_5
}
