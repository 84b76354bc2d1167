//! Section with the search for the highest rate.

use maud::{Markup, html};
use thalweg_measure::figures::bound;
use thalweg_measure::page::parts::scrolled;
use thalweg_measure::wording::counted;

use super::figures::integer;
use crate::run::{LoadRun, Search, Try};

pub(super) fn section(run: &LoadRun) -> Option<Markup> {
    let search = run.search.as_ref()?;
    let unit = run.unit();
    Some(html! {
        p.about { (conclusion(search, unit)) }
        (scrolled(&table(search, unit)))
    })
}

fn conclusion(Search { conditions, found_per_s, tries }: &Search, unit: &str) -> Markup {
    html! {
        @match found_per_s {
            Some(found) => {
                "The highest rate that meets " (all(conditions)) " is " b { (integer(*found)) "\u{a0}" (unit) "s/s" }
            }
            None => { "No tried rate meets " (all(conditions)) }
        }
        "; tried " (counted(tries.len() as u64, "rate")) "."
    }
}

fn all(conditions: &[String]) -> Markup {
    html! {
        @for (index, condition) in conditions.iter().enumerate() {
            @if index > 0 { ", " }
            code { (condition) }
        }
    }
}

fn table(search: &Search, unit: &str) -> Markup {
    let highest = search.tries.iter().map(|tried| tried.rate_per_s).fold(1.0, f64::max);
    html! {
        table.tries {
            caption.unseen { "Tried rates, in order" }
            thead {
                tr {
                    th scope="col" { "Try" }
                    th scope="col" { (if unit == "flow" { "Flows/s" } else { "Calls/s" }) }
                    th.words scope="col" { span.unseen { "Bar" } }
                    th scope="col" { "Reached" }
                    th scope="col" { "Result" }
                    th.words scope="col" { "Figures" }
                }
            }
            tbody {
                @for (number, tried) in (1..).zip(&search.tries) { (row(number, tried, highest)) }
            }
        }
    }
}

fn row(number: usize, tried: &Try, highest: f64) -> Markup {
    let class = if tried.is_met { "kept" } else { "broken" };
    html! {
        tr {
            th scope="row" { (number) }
            td { (integer(tried.rate_per_s)) }
            td.words {
                span.tried aria-hidden="true" {
                    i class=(class) style={ "width:" (format!("{:.1}", 100.0 * tried.rate_per_s / highest)) "%" } {}
                }
            }
            td { (integer(tried.reached_per_s)) }
            td {
                span class=(class) {
                    (if tried.is_met { "✓" } else { "✗" })
                    span.unseen { (if tried.is_met { "passed" } else { "failed" }) }
                }
            }
            td.words { (bound(&tried.figures.join("; "))) }
        }
    }
}
