//! Containers and captions of the charts, which the script draws.

use maud::{Markup, html};
use thalweg_measure::page::parts::choices;

use super::data::PlotData;
use crate::run::LoadRun;

const FROM_THE_SCHEDULE: &str = "Latency counts from the scheduled start, so a stalled server affects all calls that \
                                 were due meanwhile.";

pub(super) fn over_time(run: &LoadRun, plot_data: &PlotData) -> Option<Markup> {
    plot_data.time.as_ref()?;
    let what = if run.is_open() { "scheduled, OK, failed, late" } else { "OK, failed" };
    Some(html! {
        figure data-chart="rate" {
            figcaption {
                h3 { "Rate" }
                p { (if run.is_open() { run.unit() } else { "call" }) "s/s: " (what) }
            }
            (plot("rate", "", "Calls per second over time. Intervals can be saved below as CSV."))
            h4 { "In flight" small { " at the end of intervals" } }
            (plot("in-flight", "low", "Calls in flight over time."))
        }
        @if run.latency.is_some() {
            figure data-chart="latency" {
                figcaption {
                    h3 { "Latency" }
                    p { "of OK calls per interval; lower is better" }
                }
                (plot("latency", "", "Percentiles of latency over time. Those of the run are in a table below."))
            }
        }
        @if plot_data.heat.is_some() {
            figure data-chart="heat" {
                figcaption {
                    h3 { "All latencies" }
                    p {
                        "one column per interval; stronger color means more calls"
                        span.ramp { span data-least {} i {} span data-most {} }
                    }
                }
                (plot("heat", "", "Calls by latency over time. Percentiles are in a table below."))
            }
        }
        p.hint {
            @if run.is_open() && run.latency.is_some() { (FROM_THE_SCHEDULE) " " }
            "Hover for values, drag to zoom, double-click to reset."
        }
    })
}

pub(super) fn spread(run: &LoadRun, plot_data: &PlotData) -> Option<Markup> {
    plot_data.spread.as_ref()?;
    Some(html! {
        @if run.is_open() {
            p.about {
                "Service time counts from the actual start. Wait is the time from the scheduled to the actual start."
            }
        }
        div.legend role="group" aria-label="Distributions shown" {}
        div.charts {
            figure data-chart="percentiles" {
                figcaption {
                    h3 { "By percentile" }
                    p { "share of calls that took at most this long; lower is better" }
                }
                (plot("percentiles", "", "Latency by percentile. Common percentiles are in the table below."))
            }
            figure data-chart="histogram" {
                figcaption {
                    h3 { "Histogram" }
                    p { "share of calls by latency" }
                }
                (choices("Scale of shares", "shares", [("linear", "linear"), ("log", "log")]))
                (plot("histogram", "", "Distribution of latency. Percentiles are in the table below."))
            }
        }
    })
}

fn plot(name: &str, height: &str, label: &str) -> Markup {
    html! {
        div class={ "plot " (height) } data-plot=(name) role="img" aria-label=(label) {}
    }
}
