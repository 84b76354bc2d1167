//! Section with failed calls by status, and late or dropped ones.

use maud::{Markup, html};
use thalweg_measure::figures::percent;
use thalweg_measure::page::parts::scrolled;

use super::figures::integer;
use crate::run::LoadRun;

pub(super) fn section(run: &LoadRun) -> Option<Markup> {
    if run.failed + run.late + run.dropped == 0 {
        return None;
    }
    let mut errors: Vec<(&String, u64)> = run.errors.iter().map(|(code, count)| (code, *count)).collect();
    errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let (calls, scheduled) = (run.calls() as f64, (run.starts().started + run.dropped) as f64);
    Some(html! {
        @if !errors.is_empty() {
            (scrolled(&html! {
                table {
                    caption.unseen { "Failed calls by status" }
                    thead { tr { th scope="col" { "Status" } th scope="col" { "Calls" } th scope="col" { "Share" } } }
                    tbody {
                        @for (code, count) in errors {
                            tr {
                                th scope="row" { code { (code) } }
                                td { (integer(count as f64)) }
                                td { (percent(count as f64 / calls.max(1.0))) }
                            }
                        }
                    }
                }
            }))
        }
        @if run.late + run.dropped > 0 {
            p.hint {
                (integer(run.late as f64)) " " (run.unit()) "s started more than 1\u{a0}ms late; "
                (integer(run.dropped as f64)) " did not start (" (percent(run.dropped as f64 / scheduled.max(1.0)))
                " of the schedule)."
            }
        }
    })
}
