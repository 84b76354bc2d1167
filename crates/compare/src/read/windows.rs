//! `thalweg.comparison/1`, one side at a time.

use super::load_result::cell_of_benchmark;
use super::load_run::{cell_of_run, unfinished};
use super::side_input::SideInput;
use crate::cell::Cell;
use crate::comparison::{Comparison, SideId, WindowResult, WindowRun};

impl SideInput {
    /// Converts the windows of one side, each to a round.
    pub(crate) fn of_comparison(comparison: &Comparison, which: SideId) -> Self {
        let mut all: Option<Cell> = None;
        let mut notes = Vec::new();
        for window in comparison.windows.iter().filter(|window| window.side == which) {
            let cell = cell(window);
            if let WindowRun::Method(run) = &window.run {
                notes.extend(unfinished(run));
            }
            match &mut all {
                Some(all) => all.rounds.extend(cell.rounds),
                None => all = Some(cell),
            }
        }
        Self {
            cells: all.into_iter().collect(),
            machine: Some(comparison.machine.clone()),
            versions: Some(comparison.versions.clone()),
            notes,
        }
    }
}

fn cell(window: &WindowResult) -> Cell {
    let ended = window.run.ended();
    let server_cpu_ns = window.server_cpu_ns.filter(|_| ended > 0).map(|used| used as f64 / ended as f64);
    match &window.run {
        WindowRun::Method(run) => cell_of_run(run, window.round, server_cpu_ns),
        WindowRun::Benchmark(result) => cell_of_benchmark(result, window.round, server_cpu_ns),
    }
}
