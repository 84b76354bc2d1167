//! A study of message sizes as a page: plots, findings and figures of our own pair, behind a comparison where there is
//! one.

mod against;
mod figures;
mod method;
mod plots;

use maud::{Markup, html};

use super::analysis::SizesAnalysis;
use super::compare::findings as compared;
use super::findings::{answer, headlines};
use super::lines::Analysis;
use crate::load::{Kind, facts};
use crate::report::page::Page;
use crate::report::parts::{card, choices, eyebrow, findings};
use crate::stack::Pair;

const SCRIPT: &str = include_str!("../../../assets/report.js");
const AGAINST_SCRIPT: &str = include_str!("../../../assets/against.js");
const UPLOT_SCRIPT: &str = include_str!("../../../assets/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../../assets/uPlot.min.css");

/// The first is for comparisons.
const LINKS: &[(&str, &str)] = &[
    ("against", "Against others"),
    ("summary", "Summary"),
    ("plots", "Plots"),
    ("spikes", "Spikes"),
    ("figures", "Figures"),
];

/// What may be shown of latencies, the first at first.
const STATISTICS: [(&str, &str); 5] =
    [("p50", "median"), ("mean", "mean"), ("p99", "p99"), ("p99_99", "p99.99"), ("max", "max")];

const PACE: &str = "mean time from one message to the next of the same stream; lower is better";
const GAP: &str = "the longest time between two readings of the clock, of which there is one in 16 messages below \
                   4 KiB and one in each above; lower is better";
const RATE: &str = "calls, messages or round trips per second; higher is better";
const THROUGHPUT: &str = "payload bytes per second, one direction; higher is better";

pub(super) fn page(study: &SizesAnalysis<'_>) -> String {
    let SizesAnalysis { results, lines, comparison, doubts, .. } = study;
    let (links, scripts): (&[_], &[_]) = match comparison {
        Some(_) => (LINKS, &[AGAINST_SCRIPT, SCRIPT]),
        None => (&LINKS[1..], &[SCRIPT]),
    };
    let title =
        format!("Message {} {}", results.study, if comparison.is_some() { "comparison" } else { "study" });
    Page {
        title: &title,
        style: UPLOT_STYLE,
        links,
        eyebrow: eyebrow(&title, &results.started, &results.ended),
        // That of the comparison, where there is one.
        answer: comparison.as_ref().and_then(compared::answer).or_else(|| answer(lines)),
        lede: facts::lede(results),
        cards: comparison.as_ref().map_or_else(|| cards(lines), against::cards),
        doubts: doubts.clone(),
        sections: sections(study),
        method: method::method(results),
        facts: facts::facts(results),
        version: &results.versions.thalweg,
        notice: " Charts by uPlot 1.6.32 (MIT licence, © 2022 Leon Sorokin).",
        data: plots::plot_data(lines),
        library: Some(UPLOT_SCRIPT),
        scripts,
    }
    .html()
}

fn cards(analysis: &Analysis) -> Markup {
    html! {
        @for headline in headlines(analysis) {
            (card(headline.name, &headline.figure, &headline.detail))
        }
    }
}

fn sections(study: &SizesAnalysis<'_>) -> Markup {
    let SizesAnalysis { results, lines: analysis, comparison, findings: found, .. } = study;
    html! {
        @if let Some(comparison) = comparison {
            (against::sections(results, comparison))
            (alone(&comparison.ours, analysis))
        }
        section #summary {
            h2 { "What the figures say" }
            (findings(found))
        }
        (plots_section())
        section #spikes {
            h2 { "Spikes" }
            p.about {
                "For each kind of call the wait that lay farthest from what is typical of its run, and how long into \
                 the run it fell. Typical is the median latency, and of streams one way the mean time between two \
                 readings of the clock. Spikes are part of every mean, percentile and maximum on this page."
            }
            (figures::spikes_table(analysis))
        }
        section #figures {
            h2 { "All figures" }
            div.controls {
                (filter("Transport", "transport", analysis.transports().iter().map(ToString::to_string)))
                (filter("Work", "kind", analysis.kinds().into_iter().map(Kind::label)))
                span.count aria-live="polite" {}
            }
            (figures::figures_table(results, analysis))
            p.hint {
                "A click on a column's name sorts by it. Throughput counts payload bytes in one direction. “Of \
                 socket” is the rate beside that of a bare socket that moves the same bytes in the same run. CPU is \
                 the client's, user and system together, per operation. The same figures lie in " code { "results.csv" }
                ", and with whole distributions in " code { "results.json" } "."
            }
        }
    }
}

/// What parts the comparison from the study of our own pair, with that study's own headlines.
fn alone(ours: &Pair, analysis: &Analysis) -> Markup {
    html! {
        section.part {
            p.eyebrow { (ours) " alone" }
            p.about { "From here on the page is about " (ours) ", client and server, and the bare socket." }
            div.cards { (cards(analysis)) }
        }
    }
}

fn plots_section() -> Markup {
    html! {
        section #plots {
            h2 { "Plots over message size" }
            div.controls {
                div.choices role="group" aria-label="Transport" data-choice="transport" {}
                (choices("Latency shown", "statistic", STATISTICS))
            }
            div.legend role="group" aria-label="Lines shown" data-legend="own" {}
            div.charts {
                (latency_plot("latency-log", "logarithmic", "Latency, logarithmic"))
                (latency_plot("latency-linear", "linear", "Latency, linear"))
                (scaled_plot("pace", "Pace of streams one way", PACE, "log"))
                (scaled_plot("gap", "Largest gap in streams one way", GAP, "log"))
                (scaled_plot("rate", "Rate", RATE, "log"))
                (scaled_plot("throughput", "Throughput", THROUGHPUT, "linear"))
            }
            p.hint {
                "Bars are intervals of 95 %, of rates, throughputs and medians; dots are the windows that a rate was \
                 told from. Point at a plot for its values. Drag over a part to enlarge it; a double click shows all \
                 again. The size axis is logarithmic, with 0 B set beside it."
            }
        }
    }
}

fn latency_plot(id: &str, scale: &str, title: &str) -> Markup {
    let label = format!("Latency over message size, {scale} scale. All values are in the table below.");
    html! {
        figure data-chart=(id) {
            figcaption {
                h3 { (title) }
                p { span data-statistic { "median" } " of one operation; lower is better" }
            }
            div.plot role="img" aria-label=(label) {}
        }
    }
}

/// A plot whose scale can be chosen; `pressed` is that which it has at first.
fn scaled_plot(id: &str, title: &str, about: &str, pressed: &str) -> Markup {
    html! {
        figure data-chart=(id) {
            figcaption { h3 { (title) } p { (about) } }
            div.choices.small role="group" aria-label={ "Scale of the " (id) } {
                @for scale in ["log", "linear"] {
                    button type="button" data-scale=(scale) aria-pressed=(scale == pressed) { (scale) }
                }
            }
            div.plot role="img" aria-label={ (title) " over message size. All values are in the table below." } {}
        }
    }
}

fn filter(label: &str, name: &str, options: impl Iterator<Item = String>) -> Markup {
    html! {
        label {
            (label) " "
            select data-filter=(name) {
                option value="" { "all" }
                @for name in options { option { (name) } }
            }
        }
    }
}
