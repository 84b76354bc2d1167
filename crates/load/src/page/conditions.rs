//! Section with the conditions and their results.

use maud::{Markup, html};
use thalweg_measure::figures::bound;
use thalweg_measure::page::parts::scrolled;

use crate::run::LoadRun;

pub(super) fn section(run: &LoadRun) -> Option<Markup> {
    (!run.gates.is_empty()).then(|| {
        scrolled(&html! {
            table {
                caption.unseen { "Conditions and results" }
                thead { tr { th scope="col" { "Condition" } th scope="col" { "Value" } th scope="col" { "Result" } } }
                tbody {
                    @for gate in &run.gates {
                        tr {
                            th scope="row" { code { (gate.gate) } }
                            td { (bound(&gate.figure)) }
                            td { (verdict(gate.is_kept)) }
                        }
                    }
                }
            }
        })
    })
}

fn verdict(is_kept: bool) -> Markup {
    html! {
        @if is_kept { span.kept { "✓ passed" } } @else { span.broken { "✗ failed" } }
    }
}
