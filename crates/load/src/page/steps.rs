//! Section with the steps of a scenario.

use maud::{Markup, html};
use thalweg_measure::figures::{percent, time};
use thalweg_measure::page::parts::scrolled;

use super::figures::integer;
use crate::run::{LoadRun, StepRun};

/// Returns the section for scenarios only, since otherwise the single step is the run.
pub(super) fn section(run: &LoadRun) -> Option<Markup> {
    (run.kind == "scenario" && !run.steps.is_empty()).then(|| {
        scrolled(&html! {
            table.timings {
                caption.unseen { "Steps of the scenario" }
                thead {
                    tr {
                        th scope="col" { "Step" }
                        th.words scope="col" { "Flow" }
                        @for name in ["calls", "errors", "p50", "p90", "p95", "p99", "max"] {
                            th scope="col" { (name) }
                        }
                    }
                }
                tbody { @for step in &run.steps { (row(step)) } }
            }
        })
    })
}

fn row(step: &StepRun) -> Markup {
    let calls = step.ok + step.failed;
    let quantiles = step.latency.as_ref().map_or([None; 5], |latency| {
        let ns = &latency.ns;
        [Some(ns.p50), Some(ns.p90), latency.p95(), Some(ns.p99), Some(ns.max)]
    });
    let codes: Vec<String> = step.errors.iter().map(|(code, count)| format!("{count} {code}")).collect();
    let is_named = step.step != step.method && step.step != step.method.replace('/', ".");
    html! {
        tr {
            th scope="row" {
                (step.step)
                @if is_named { small { (step.method) } }
            }
            td.words { (step.flow) }
            td { (integer(calls as f64)) }
            td {
                @if step.failed == 0 { "0" } @else {
                    span.broken { (percent(step.failed as f64 / calls as f64)) }
                    small { (codes.join(", ")) }
                }
            }
            @for ns in quantiles { td { (ns.map_or("–".to_owned(), |ns| time(ns as f64))) } }
        }
    }
}
