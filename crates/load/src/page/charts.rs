//! Where plots go, and what is said of them. The script draws them.

use maud::{Markup, html};
use thalweg_lab::report::parts::choices;

use super::data::Drawn;
use crate::run::LoadRun;

const FROM_THE_SCHEDULE: &str = "Latency counts from when a call was scheduled to begin, whenever it did: a server \
                                 that stands still is seen by all calls that were to begin meanwhile.";

pub(super) fn over_time(run: &LoadRun, drawn: &Drawn) -> Option<Markup> {
    drawn.time.as_ref()?;
    let what =
        if run.is_open() { "scheduled, ended with OK, failed and late" } else { "ended with OK and failed" };
    Some(html! {
        figure data-chart="rate" {
            figcaption {
                h3 { "Rate" }
                p { (if run.is_open() { run.unit() } else { "call" }) "s a second: " (what) }
            }
            (plot("rate", "", "Calls a second over time. The intervals can be saved below as CSV."))
            h4 { "In flight" small { " at the end of each interval" } }
            (plot("in-flight", "low", "Calls in flight over time."))
        }
        @if run.latency.is_some() {
            figure data-chart="latency" {
                figcaption {
                    h3 { "Latency" }
                    p { "of calls that ended with OK in each interval; lower is better" }
                }
                (plot("latency", "", "Percentiles of latency over time. Those of the run are in a table below."))
            }
        }
        @if drawn.heat.is_some() {
            figure data-chart="heat" {
                figcaption {
                    h3 { "All latencies" }
                    p {
                        "a column for each interval; the darker or brighter a field, the more calls took so long"
                        span.ramp { span data-least {} i {} span data-most {} }
                    }
                }
                (plot("heat", "", "Calls by latency over time. Percentiles are in a table below."))
            }
        }
        p.hint {
            @if run.is_open() && run.latency.is_some() { (FROM_THE_SCHEDULE) " " }
            "Point at a plot for its values. Drag over a part to enlarge it; a double click shows all again."
        }
    })
}

pub(super) fn spread(run: &LoadRun, drawn: &Drawn) -> Option<Markup> {
    drawn.spread.as_ref()?;
    Some(html! {
        @if run.is_open() {
            p.about {
                "Service counts from when a call did begin, and wait is from the scheduled start to that moment. What \
                 latency has beyond service, waiting has added."
            }
        }
        div.legend role="group" aria-label="Distributions shown" {}
        div.charts {
            figure data-chart="percentiles" {
                figcaption {
                    h3 { "By percentile" }
                    p { "so many of a hundred took no longer than this; lower is better" }
                }
                (plot("percentiles", "", "Times by percentile. The usual ones are in the table below."))
            }
            figure data-chart="histogram" {
                figcaption {
                    h3 { "Histogram" }
                    p { "share of all, by time" }
                }
                (choices("Scale of shares", "shares", [("linear", "linear"), ("log", "log")]))
                (plot("histogram", "", "How times are distributed. Percentiles are in the table below."))
            }
        }
    })
}

fn plot(name: &str, height: &str, label: &str) -> Markup {
    html! {
        div class={ "plot " (height) } data-plot=(name) role="img" aria-label=(label) {}
    }
}
