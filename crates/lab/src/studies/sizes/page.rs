//! A study of message sizes as a page: plots, findings and figures of our own pair, behind a comparison where there is
//! one.

mod against;
mod anchor;
mod choice;
mod curves;
mod figures;
mod method;
mod plots;
mod timeline;
mod windows;

use maud::{Markup, html};
use thalweg_measure::page::charts;
use thalweg_measure::page::parts::{card, choices, eyebrow};

use super::analysis::SizesAnalysis;
use super::compare::Comparison;
use super::findings::Headline;
use crate::load::{Kind, facts, stacks};
use crate::report::page::Page;
use crate::report::topics::findings;
use crate::stack::Pair;

const SCRIPT: &str = include_str!("../../../assets/report.js");
const PERCENTILES_SCRIPT: &str = include_str!("../../../assets/percentiles.js");
const TIME_SCRIPT: &str = include_str!("../../../assets/time.js");
const AGAINST_SCRIPT: &str = include_str!("../../../assets/against.js");

/// All sections that a page may have.
const LINKS: [(&str, &str); 9] = [
    ("against", "Compared with other stacks"),
    ("choice", "Which call"),
    ("summary", "Summary"),
    ("plots", "Plots"),
    ("percentiles", "Percentiles"),
    ("time", "Time"),
    ("spikes", "Spikes"),
    ("figures", "Figures"),
    ("windows", "Windows"),
];

/// What may be shown of latencies, the first at first.
const STATISTICS: [(&str, &str); 6] = [
    ("p50", "median"),
    ("mean", "mean"),
    ("p95", "p95"),
    ("p99", "p99"),
    ("p99_99", "p99.99"),
    ("max", "max"),
];

const PACE: &str = "mean time from one message to the next of the same stream; lower is better";
const GAP: &str = "the longest time between two readings of the clock, of which there is one in 16 messages below \
                   4 KiB and one in each above; lower is better";
const RATE: &str = "calls, messages or round trips per second; higher is better";
const THROUGHPUT: &str = "payload bytes per second, one direction; higher is better";

pub(super) fn page(study: &SizesAnalysis<'_>) -> String {
    let SizesAnalysis { results, lines, comparison, doubts, .. } = study;
    let against = if told(study).is_some() { AGAINST_SCRIPT } else { "" };
    let links = links(study);
    let title =
        format!("Message {} {}", results.study, if comparison.is_some() { "comparison" } else { "study" });
    Page {
        title: &title,
        style: charts::STYLE,
        links: &links,
        eyebrow: eyebrow(&title, &results.started, &results.ended),
        answer: study.unanswered.clone().or_else(|| study.answer.clone()),
        lede: facts::lede(results),
        // Behind the choices, where there is no comparison.
        cards: told(study).map_or_else(|| html! {}, against::cards),
        doubts: doubts.iter().map(ToString::to_string).collect(),
        sections: sections(study),
        method: method::method(results),
        facts: facts::facts(results),
        version: &results.versions.thalweg,
        notice: charts::NOTICE,
        data: plots::plot_data(results, lines),
        library: Some(charts::LIBRARY),
        scripts: &[charts::SCRIPT, charts::ENDS, PERCENTILES_SCRIPT, TIME_SCRIPT, against, SCRIPT],
    }
    .html()
}

/// The sections that the page has.
fn links(study: &SizesAnalysis<'_>) -> Vec<(&'static str, &'static str)> {
    let has_figures = !study.lines.lines.is_empty();
    let is_there = |(id, _): &(&str, &str)| match *id {
        "against" => told(study).is_some(),
        "choice" => !study.choices.is_empty(),
        "summary" => !study.findings.is_empty(),
        "plots" | "percentiles" | "time" | "spikes" => has_figures,
        _ => true,
    };
    LINKS.into_iter().filter(is_there).collect()
}

/// The comparison, if it tells anything.
fn told<'s>(study: &'s SizesAnalysis<'_>) -> Option<&'s Comparison> {
    study.comparison.as_ref().filter(|_| study.unanswered.is_none())
}

fn cards(headlines: &[Headline]) -> Markup {
    html! {
        @for headline in headlines {
            (card(headline.name, &headline.figure, &headline.detail))
        }
    }
}

fn sections(study: &SizesAnalysis<'_>) -> Markup {
    let SizesAnalysis { results, lines: analysis, choices, comparison, findings: found, headlines, .. } =
        study;
    let has_figures = !analysis.lines.is_empty();
    html! {
        @if let Some(comparison) = told(study) {
            (against::sections(results, comparison))
        }
        @if let Some(comparison) = comparison {
            (alone(&comparison.ours, headlines))
        } @else {
            (choice::section(analysis, choices))
            div.cards { (cards(headlines)) }
        }
        @if !found.is_empty() {
            section #summary {
                h2 { "Findings" }
                (findings(found).html())
            }
        }
        @if has_figures {
            (plots_section())
            (percentiles_section())
            (time_section())
            section #spikes {
                h2 { "Spikes" }
                p.about {
                    "For each kind of call the wait that lay farthest from what is typical of its run, and how long \
                     into the run it fell. Typical is the median latency, and of streams one way the mean time between \
                     two readings of the clock. Spikes are part of every mean, percentile and maximum on this page."
                }
                (figures::spikes_table(analysis))
            }
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
                ", and with whole distributions in " code { "results.json" } ". A name leads to the windows that its \
                 row was told from."
            }
        }
        @if comparison.is_none() {
            section #stacks {
                h2 { "How the stack was set up" }
                (stacks::list(&results.stacks, &results.left_out))
            }
        }
        (windows::section(results))
    }
}

/// What parts the comparison from the study of our own pair, with that study's own headlines.
fn alone(ours: &Pair, headlines: &[Headline]) -> Markup {
    html! {
        section.part {
            p.eyebrow { (ours) " alone" }
            p.about { "From here on the page is about " (ours) ", client and server, and the bare socket." }
            div.cards { (cards(headlines)) }
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
                 told from. Point at a plot for its values; a click on a point leads to its windows. Drag over a part \
                 to enlarge it; a double click shows all again. The size axis is logarithmic, with 0 B set beside it."
            }
        }
    }
}

fn percentiles_section() -> Markup {
    html! {
        section #percentiles {
            h2 { "Percentiles" }
            div.controls {
                (choices("Curves", "curves", [("size", "sizes of one call"), ("kind", "calls of one size")]))
                label data-of="size" { "Call " select data-curve="kind" {} }
                label data-of="kind" { "Size " select data-curve="size" {} }
                div.choices role="group" aria-label="Transport of the curves" data-choice="carrier" {}
            }
            figure data-chart="percentiles" {
                figcaption {
                    h3 { "Latency by percentile" }
                    p { "so many of a hundred operations took no longer than this; lower is better" }
                }
                div.plot.tall role="img" aria-label="Latency by percentile. The usual ones are in the table below." {}
            }
            p.hint {
                "A line is of all windows of a cell together; around it lies the range from the lowest to the highest \
                 single window, as far as two of them have so many operations. The percentiles in the table of figures \
                 are medians over windows. Streams one way have no latency that their client could see. A line ends \
                 where fewer than one operation lies above, at 99.9999 % at the latest."
            }
        }
    }
}

fn time_section() -> Markup {
    html! {
        section #time {
            h2 { "Rate over time" }
            figure {
                figcaption {
                    h3 { "Windows over time" }
                    p { "its rate ÷ the median rate of its cell: 1 is typical of the same call, size and transport" }
                }
                div.plot data-chart="time-rate" role="img"
                    aria-label="Rates of windows through time. The values are in the tables of windows below." {}
                h4 {
                    "Waited for a processor"
                    small { " of the window’s time; " i.client {} " client, " i.server {} " server" }
                }
                div.plot.low data-chart="time-waited" role="img"
                    aria-label="Time in which threads waited for a processor, through time; in the tables below." {}
                h4 { "CPU time taken by others" small { " per second, client and server together" } }
                div.plot.low data-chart="time-taken" role="img"
                    aria-label="Involuntary context switches through time; in the tables below." {}
            }
            p.hint {
                "The line is the median of " span data-neighbours {} " windows that stand next to each other, whatever \
                 they measured: where it leaves 1, something slowed the machine or left it alone. A ring is a window \
                 whose client was the limit, a cross at the lower edge one that is not valid, and a triangle at the \
                 upper edge a long wait, at its time. A click leads to the windows of the cell."
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
