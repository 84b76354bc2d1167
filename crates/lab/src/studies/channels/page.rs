//! A channels study as a page of its own.

mod data;
mod numbers;
mod settable;
mod table;
mod wire;

use maud::{Markup, html};
use thalweg_measure::figures::{bound, count, interval_figure, ratio_figure};
use thalweg_measure::page::parts::{card, choices, eyebrow, scrolled};
use thalweg_measure::size::ByteSize;

use super::analyse::Channels;
use super::analysis::ChannelsAnalysis;
use super::answer::answer;
use super::findings::Verdict;
use super::limit::{Judgement, Limit};
use super::numbers::Tally;
use crate::load::{LabResults, facts, stacks};
use crate::report::page::{MULTIPLES, PLOT, Page};

const STYLE: &str = include_str!("../../../assets/channels.css");
const SCRIPT: &str = include_str!("../../../assets/channels.js");

/// What may be shown of latencies, the first at first.
const STATISTICS: [(&str, &str); 6] =
    [("p50", "median"), ("p90", "p90"), ("p95", "p95"), ("p99", "p99"), ("p99_9", "p99.9"), ("max", "max")];

pub(super) fn page(study: &ChannelsAnalysis<'_>) -> String {
    let ChannelsAnalysis { results, channels, verdicts, doubts, unanswered } = study;
    let lanes = data::lanes(channels);
    Page {
        title: "Channels study",
        style: STYLE,
        links: &[
            ("numbers", "Best numbers"),
            ("verdicts", "Verdicts"),
            ("plots", "Plots"),
            ("lanes", "Lanes"),
            ("wire", "Wire"),
            ("figures", "Figures"),
        ],
        eyebrow: eyebrow("Channels study", &results.started, &results.ended),
        answer: unanswered.clone().or_else(|| answer(verdicts, &results.settings)),
        lede: facts::lede(results),
        cards: cards(verdicts),
        doubts: doubts.iter().map(ToString::to_string).collect(),
        sections: html! {
            (sections(channels, verdicts, &lanes))
            section #settable {
                h2 { "Several connections, by stack" }
                (settable::list(results))
            }
            section #stacks {
                h2 { "How each stack was set up" }
                (stacks::list(&results.stacks, &results.left_out))
            }
        },
        method: method(results),
        facts: facts::facts(results),
        version: &results.versions.thalweg,
        notice: "",
        data: data::json(channels, lanes),
        library: None,
        scripts: &[PLOT, MULTIPLES, SCRIPT],
    }
    .html()
}

/// What one connection moved, and what several did.
fn cards(verdicts: &[Verdict]) -> Markup {
    let of_verdict = |verdict: &Verdict| {
        let Judgement { gain, last, tally, .. } = &verdict.judgement;
        let loads = tally.loads();
        let gained = gain.as_ref().and_then(|gain| Some((gain, gain.several.over_one.ratio?)));
        let (figure, detail) = match gained {
            Some((gain, ratio)) => (
                format!("{} ×", ratio_figure(ratio.ratio)),
                format!(
                    "({}) as much over {} connections, with {} in flight; a gain at {} of {loads} loads",
                    interval_figure(ratio).unwrap_or_default(),
                    gain.several.connections,
                    gain.in_flight,
                    tally.gains
                ),
            ),
            None => (
                format!("{}/s", count(last.rate_per_s)),
                format!("over one connection with {} in flight{}", last.in_flight, beside(*tally)),
            ),
        };
        card(&format!("{}, {}", verdict.stack, verdict.numbers.call.name()), &figure, &detail)
    };
    let without_delay = verdicts.iter().filter(|verdict| verdict.numbers.round_trip.is_zero());
    html! {
        @for verdict in without_delay { (of_verdict(verdict)) }
    }
}

/// What several connections did where no gain is shown.
fn beside(tally: Tally) -> String {
    let loads = tally.loads();
    match tally {
        Tally { cannot_tell: open @ 1.., .. } => {
            format!("; whether more connections gain cannot be told at {open} of {loads} loads")
        }
        Tally { nothing: 1.., .. } => format!("; more connections gain nothing at any of {loads} loads"),
        _ => String::new(),
    }
}

fn sections(channels: &Channels, verdicts: &[Verdict], lanes: &[data::LanesPanel]) -> Markup {
    html! {
        @if !verdicts.is_empty() {
            section #numbers {
                h2 { "Best number of connections" }
                (numbers::tables(verdicts))
                (numbers::about(verdicts))
            }
            section #verdicts {
                h2 { "What limits each stack" }
                p.about {
                    "Derived from the figures below: where a line falls behind ideal scaling, whether more connections \
                     move more, and how busy both sides’ processors were."
                }
                @for one in verdicts { (verdict(one)) }
            }
        }
        (plots(channels))
        section #lanes {
            h2 { "Lanes over time" }
            (lanes_over_time(lanes))
        }
        section #wire {
            h2 { "Idle wire time" }
            (wire::gaps(channels))
        }
        section #figures {
            h2 { "All figures" }
            (scrolled(&table::table(channels, verdicts)))
            p.hint {
                "A click on a column’s name sorts by it. Connections are those in the kernel’s tables. Processor \
                 time is user and system together, of one operation. System calls were counted, and the wire was \
                 watched, in windows of their own. The same figures lie in " code { "results.csv" }
                ", and with whole distributions in " code { "results.json" } "."
            }
        }
    }
}

fn verdict(verdict: &Verdict) -> Markup {
    let (class, badge) = badge(verdict.judgement.limit);
    html! {
        article.verdict data-limit=(badge) {
            h3 {
                (verdict.stack)
                small { (bound(&verdict.place())) }
                span class={ "badge " (class) } { (badge) }
            }
            p { (bound(&verdict.text)) }
            p.advice { b { "To change:" } " " (bound(&verdict.advice)) }
        }
    }
}

/// Its class, and what it says.
fn badge(limit: Limit) -> (&'static str, &'static str) {
    match limit {
        Limit::Nothing => ("free", "scales"),
        Limit::Network => ("free", "the network"),
        Limit::Channel => ("channel", "the channel"),
        Limit::Streams => ("channel", "streams"),
        Limit::ClientCpu => ("", "the client’s processors"),
        Limit::Server => ("", "the server’s processors"),
        Limit::Both => ("", "both sides’ processors"),
        Limit::Unknown => ("", "something else"),
        Limit::CannotTell => ("", "cannot tell"),
    }
}

fn plots(channels: &Channels) -> Markup {
    html! {
        section #plots {
            h2 { "Rate and latency over calls in flight" }
            div.controls {
                (choices("Kind of call", "call", channels.calls().into_iter().map(|call| (call.name(), call.name()))))
                (choices("Latency shown", "statistic", STATISTICS))
            }
            div.legend role="group" aria-label="Lines shown" {}
            h3.table-title { "Operations per second; higher is better" }
            div.multiples data-figure="rate" {}
            h3.table-title { span data-statistic { "Median" } " latency; lower is better" }
            div.multiples data-figure="latency" {}
            p.hint {
                "A plot for each delay, all on the same axes, both logarithmic. The grey line is ideal scaling: \
                 every call in flight as fast as the lone call of the fastest line. Bars are intervals of 95 %, of \
                 rates and medians; dots beside them the windows that a rate was told from. Point at a plot for its \
                 values."
            }
        }
    }
}

fn lanes_over_time(lanes: &[data::LanesPanel]) -> Markup {
    html! {
        @if lanes.is_empty() {
            p.about { "No channel of this study finds its own number of connections." }
        } @else {
            p.about {
                "Connected lanes of the adaptive channel, from the beginning of the warm-up on; a line for each \
                 number of calls in flight, which stands at its end."
            }
            div.multiples {
                @for (index, panel) in lanes.iter().enumerate() {
                    figure data-lanes=(index) { figcaption { (bound(&panel.title)) } }
                }
            }
        }
    }
}

fn method(results: &LabResults) -> Vec<String> {
    let settings = &results.settings;
    let pinned = match (&settings.client_cpus, &settings.server_cpus) {
        (Some(client), Some(server)) => {
            format!("Clients are kept on the processors {client}, servers on {server}.")
        }
        _ => "Client and server share the processors.".to_owned(),
    };
    let size = results.points.first().map_or(ByteSize(0), |window| window.point.size_bytes);
    vec![
        pinned,
        format!(
            "The load is a closed loop: as many workers as calls in flight, each of which makes a call when the one \
             before has ended. Messages have {size} of payload. A ping-pong is a bidi stream of each worker with one \
             message under way."
        ),
        "Variants are measured in short, interleaved windows, in forward and then reverse order (ABBA), so slow phases \
         of the machine affect all of them. An adaptive channel has a longer warm-up, to find its number of lanes."
            .to_owned(),
        "A delay is a link in user space between client and server, which holds each byte for half of it either way, \
         in order; it passes connections on one by one. Without a delay both talk directly."
            .to_owned(),
        "Connections are counted in the kernel, at the server’s side. Processor time and context switches are the \
         kernel’s, of either process. System calls are counted by strace, and gaps between bytes by a link without a \
         delay, in windows whose rates are not used."
            .to_owned(),
        "Ideal scaling is the rate of the fastest lone call, times the calls in flight.".to_owned(),
        "A variant with several connections is compared with one connection, and the adaptive channel with the best \
         number, by the ratios of windows of the same round. Intervals are 95 % intervals with Bonferroni correction \
         for the number of variants at each load, but not across loads. A gain requires that the interval excludes 1 \
         and that the ratio exceeds the noise floor, which is the largest difference of one connection from itself."
            .to_owned(),
        "What limits a stack is derived from its line over one connection: it scales while it moves at least half of \
         what ideal scaling gives; one connection is the limit where a gain of 1.15 times or more by several is shown; \
         a side’s processors limit from 88 % on."
            .to_owned(),
    ]
}
