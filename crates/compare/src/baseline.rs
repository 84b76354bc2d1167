//! Compares a run of `thalweg load` with an earlier one (`--baseline`).

use thalweg_load::{Judged, LoadRun};
use thalweg_measure::figures::percent;

use crate::compare::{Options, Refused, Together, compare};
use crate::figure::Figure;
use crate::obstacle::Obstacle;
use crate::read::Input;
use crate::report::{Compared, Report};
use crate::side::{Side, SideError};

const BASELINE: &str = "the baseline";
const RUN: &str = "this run";

/// Compares a run with an earlier one. Judges mean, p50 and p99 latency, the share of failed calls, and the rate of a
/// closed loop.
///
/// Other conditions, another machine and invalid runs cause warnings, not errors, because the run is already done.
///
/// # Errors
///
/// Returns an error if the runs differ in method or loop kind.
pub fn against(baseline: &LoadRun, run: &LoadRun, max_regression: f64) -> Result<Report, Refused> {
    for (what, one, other) in
        [("method", &baseline.method, &run.method), ("loop", &baseline.loop_kind, &run.loop_kind)]
    {
        if one != other {
            let obstacle = Obstacle { what: what.to_owned(), a: one.clone(), b: other.clone() };
            return Err(Refused::new(BASELINE, RUN, format!("they differ in {obstacle}")));
        }
    }
    let side = |name: &str, run: &LoadRun| {
        let input = Input::Run(Box::new(run.clone()));
        Side::of(name, vec![(name.to_owned(), input)])
            .map_err(|error: SideError| Refused::new(BASELINE, RUN, error.to_string()))
    };
    let mut judged = vec![Figure::Mean, Figure::P50, Figure::P99];
    judged.extend(run.schedule.is_none().then_some(Figure::Rate));
    let options = Options { margin: max_regression, fail_on: Some(judged), force: true };
    compare(&side(BASELINE, baseline)?, &side(RUN, run)?, Together::Apart, &options)
}

/// Returns the gates that [`against`] judges. A figure without a confidence interval is judged by its ratio alone.
pub fn gates(report: &Report) -> Vec<Judged> {
    let margin = percent(report.margin);
    let of_figure = |compared: &Compared| {
        let shown = |value: Option<f64>| value.map_or_else(String::new, |value| compared.figure.shown(value));
        let most = 1.0 + report.margin;
        let worse_by = if compared.figure.is_good() { compared.ratio.recip() } else { compared.ratio };
        let (name, a) = (compared.figure.label(), &report.a);
        Judged {
            gate: format!("{name} at most {margin} worse than {a} ({})", shown(compared.a)),
            figure: format!("{}, {}", shown(compared.b), compared.factor()),
            is_kept: if compared.interval.is_some() { !compared.fails() } else { worse_by <= most },
        }
    };
    let mut gates = Vec::new();
    for cell in &report.cells {
        gates.extend(cell.figures.iter().filter(|compared| compared.is_gated).map(of_figure));
        gates.push(Judged {
            gate: format!(
                "failed {}s at most 1 percentage point above {} ({})",
                cell.conditions.unit(),
                report.a,
                percent(cell.failed.a)
            ),
            figure: percent(cell.failed.b),
            is_kept: !cell.failed.fails(),
        });
    }
    gates
}
