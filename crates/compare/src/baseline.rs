//! Compares a run of `thalweg load` with an earlier one (`--baseline`).

use thalweg_load::{ConditionResult, LoadRun};
use thalweg_measure::figures::percent;

use crate::compare::{NotComparable, Options, Pairing, compare};
use crate::difference::Difference;
use crate::figure::Figure;
use crate::read::Input;
use crate::report::{FigureComparison, Report};
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
pub fn compare_with_baseline(
    baseline: &LoadRun,
    run: &LoadRun,
    max_regression: f64,
) -> Result<Report, NotComparable> {
    for (what, one, other) in
        [("method", &baseline.method, &run.method), ("loop", &baseline.loop_kind, &run.loop_kind)]
    {
        if one != other {
            let obstacle = Difference { property: what.to_owned(), a: one.clone(), b: other.clone() };
            return Err(NotComparable::new(BASELINE, RUN, format!("they differ in {obstacle}")));
        }
    }
    let side = |name: &str, run: &LoadRun| {
        let input = Input::Run(Box::new(run.clone()));
        Side::of_inputs(name, vec![(name.to_owned(), input)])
            .map_err(|error: SideError| NotComparable::new(BASELINE, RUN, error.to_string()))
    };
    let mut judged = vec![Figure::Mean, Figure::P50, Figure::P99];
    judged.extend(run.schedule.is_none().then_some(Figure::Rate));
    let options = Options { margin: max_regression, fail_on: Some(judged), force: true };
    compare(&side(BASELINE, baseline)?, &side(RUN, run)?, Pairing::Unpaired, &options)
}

/// Returns the gates that [`compare_with_baseline`] judges. A figure without a confidence interval is judged by its
/// ratio alone.
pub fn gates(report: &Report) -> Vec<ConditionResult> {
    let margin = percent(report.margin);
    let of_figure = |compared: &FigureComparison| {
        let shown =
            |value: Option<f64>| value.map_or_else(String::new, |value| compared.figure.format(value));
        let most = 1.0 + report.margin;
        let worse_by =
            if compared.figure.higher_is_better() { compared.ratio.recip() } else { compared.ratio };
        let (name, a) = (compared.figure.label(), &report.a);
        ConditionResult {
            condition: format!("{name} at most {margin} worse than {a} ({})", shown(compared.a)),
            figure: format!("{}, {}", shown(compared.b), compared.factor()),
            is_met: if compared.interval.is_some() { !compared.fails() } else { worse_by <= most },
        }
    };
    let mut gates = Vec::new();
    for cell in &report.cells {
        gates.extend(cell.figures.iter().filter(|compared| compared.is_gated).map(of_figure));
        gates.push(ConditionResult {
            condition: format!(
                "failed {}s at most 1 percentage point above {} ({})",
                cell.conditions.unit(),
                report.a,
                percent(cell.failed.a)
            ),
            figure: percent(cell.failed.b),
            is_met: !cell.failed.fails(),
        });
    }
    gates
}
