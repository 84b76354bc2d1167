//! A study of the lab.

use thalweg_measure::measured::{MeasuredCell, MeasuredStudy, MeasuredWindow};
use thalweg_measure::wording::counted;

use super::load_run::timed;
use super::side_input::SideInput;
use crate::cell::{Cell, Conditions, Round};
use crate::figure::Figure;

impl SideInput {
    /// Converts the cells of one stack, or of all stacks, with the stack's name as a condition.
    pub(crate) fn of_study(results: &MeasuredStudy, stack: Option<&str>) -> Self {
        let is_wanted = |cell: &&MeasuredCell| stack.is_none_or(|stack| cell.pair.as_deref() == Some(stack));
        let mut excluded = 0;
        let cells = results.cells.iter().filter(is_wanted).map(|cell| {
            let MeasuredCell { mut conditions, pair, windows, excluded: left_out } = cell.clone();
            excluded += left_out;
            if stack.is_none() {
                conditions.extend(pair.map(|pair| ("stack", pair)));
            }
            let rounds = windows.into_iter().map(round).collect();
            Cell { conditions: Conditions::new(conditions), is_open: false, rounds, request_bytes: None }
        });
        let cells = cells.filter(|cell| !cell.rounds.is_empty()).collect();
        let notes = (excluded > 0).then(|| {
            format!(
                "{} of the study left out after failures or disturbances",
                counted(excluded as u64, "window")
            )
        });
        Self {
            cells,
            machine: Some(results.machine.clone()),
            versions: Some(results.versions.clone()),
            notes: notes.into_iter().collect(),
        }
    }
}

fn round(window: MeasuredWindow) -> Round {
    let figures = timed(window.latency_ns)
        .with(Figure::Rate, Some(window.rate_per_s))
        .with(Figure::ClientCpu, Some(window.client_cpu_ns))
        .with(Figure::ServerCpu, Some(window.server_cpu_ns));
    Round { number: window.round, figures, ..Round::default() }
}
