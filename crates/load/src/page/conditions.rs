//! Section with the conditions and their results.

use maud::{Markup, html};
use thalweg_measure::figures::bound;
use thalweg_measure::page::parts::scrolled;

use crate::run::LoadRun;

pub(super) fn section(run: &LoadRun) -> Option<Markup> {
    (!run.conditions.is_empty()).then(|| {
        scrolled(&html! {
            table {
                caption.unseen { "Conditions and results" }
                thead { tr { th scope="col" { "Condition" } th scope="col" { "Value" } th scope="col" { "Result" } } }
                tbody {
                    @for condition in &run.conditions {
                        tr {
                            th scope="row" { code { (condition.condition) } }
                            td { (bound(&condition.figure)) }
                            td { (verdict(condition.is_met)) }
                        }
                    }
                }
            }
        })
    })
}

fn verdict(is_met: bool) -> Markup {
    html! {
        @if is_met { span.kept { "✓ passed" } } @else { span.broken { "✗ failed" } }
    }
}
