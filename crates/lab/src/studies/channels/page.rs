//! Page of a channels study.

mod plots;
mod settable;

use maud::{Markup, html};
use thalweg_measure::figures::{bound, count, interval_figure, ratio_figure};
use thalweg_measure::page::parts::card;
use thalweg_measure::page::section::{Block, Section};
use thalweg_measure::size::ByteSize;
use thalweg_measure::wording::counted;

use super::analyse::Channels;
use super::analysis::ChannelsAnalysis;
use super::columns;
use super::findings::StackVerdict;
use super::limit::{Limit, LimitJudgement};
use super::numbers::LoadsTally;
use crate::load::{LabResults, facts, stacks};

/// Returns cards with the throughput of one connection and of several.
pub(super) fn cards(verdicts: &[StackVerdict]) -> Markup {
    let of_verdict = |verdict: &StackVerdict| {
        let LimitJudgement { gain, last, tally, .. } = &verdict.judgement;
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
                format!("over one connection with {} in flight{}", last.in_flight, no_gain_text(*tally)),
            ),
        };
        card(&format!("{}, {}", verdict.stack, verdict.numbers.call.name()), &figure, &detail)
    };
    let without_delay = verdicts.iter().filter(|verdict| verdict.numbers.round_trip.is_zero());
    html! {
        @for verdict in without_delay { (of_verdict(verdict)) }
    }
}

/// Returns the text on several connections if no gain is shown.
fn no_gain_text(tally: LoadsTally) -> String {
    let loads = tally.loads();
    match tally {
        LoadsTally { cannot_tell: open @ 1.., .. } => {
            format!("; it is unclear at {open} of {loads} loads whether more connections help")
        }
        LoadsTally { nothing: 1.., .. } => {
            format!("; more connections make no difference at any of {loads} loads")
        }
        _ => String::new(),
    }
}

pub(super) fn sections(study: &ChannelsAnalysis<'_>) -> Vec<Section> {
    let ChannelsAnalysis { results, channels, verdicts, .. } = study;
    let best = verdicts.iter().map(|it| (format!("{}, {}", it.stack, it.conditions()), columns::numbers(it)));
    let limits = "Derived from the figures below: where a line falls behind ideal scaling, whether more connections \
                  move more, and how busy both sides’ processors were.";
    let mut sections = vec![
        Section::new(
            "numbers",
            "Best numbers",
            "Best number of connections",
            vec![Block::Tables(best.collect()), Block::About(about_numbers(verdicts))],
        ),
        Section::new(
            "verdicts",
            "Verdicts",
            "What limits each stack",
            vec![Block::about(limits), Block::Raw(html! { @for one in verdicts { (verdict(one)) } })],
        ),
    ];
    sections.retain(|_| !verdicts.is_empty());
    sections.extend([
        Section::new("plots", "Plots", "Rate and latency over calls in flight", plots::over_load(channels)),
        Section::new("lanes", "Lanes", "Lanes over time", plots::lanes(channels)),
        Section::new("wire", "Wire", "Idle wire time", wire(channels)),
        Section::new("figures", "Figures", "All figures", vec![
            Block::Table(columns::figures(verdicts, channels.points())),
            Block::hint(
                "Click a column header to sort by it. Connections are those in the kernel’s tables. Processor time \
                 is user and system together, of one operation. System calls were counted, and the wire was watched, \
                 in windows of their own. The same figures are in `results.csv`, and with whole distributions in \
                 `results.json`."
            ),
        ]),
        Section::new("settable", "", "Several connections, by stack", vec![Block::Raw(settable::list(results))]),
        stacks::section("How each stack was set up", &results.stacks, &results.left_out),
    ]);
    sections
}

/// Explains the tables of best numbers.
fn about_numbers(verdicts: &[StackVerdict]) -> String {
    let variants =
        verdicts.iter().flat_map(|it| &it.numbers.rows).map(|row| row.several.len()).max().unwrap_or(0);
    let corrected = if variants > 1 {
        format!(
            ", with Bonferroni correction for the {} compared at a load, so that it also holds for the one that is \
             picked",
            counted(variants as u64, "variant")
        )
    } else {
        String::new()
    };
    format!(
        "The best number is the fewest connections that are not shown to be slower than the best: several if a gain is \
         shown, 1 if a gain of more than 10 % is ruled out, and “cannot tell” if the intervals allow both. The 95 % \
         interval is shown behind each ratio{corrected}. A question mark means that a difference of more than 10 % is \
         neither shown nor ruled out. The adaptive channel is compared with the best number or, if that is unknown, \
         with the fixed number that has the highest rate."
    )
}

fn wire(channels: &Channels<'_>) -> Vec<Block> {
    let gaps = columns::gaps(channels);
    if gaps.rows.is_empty() {
        return vec![Block::about("The wire was not observed.")];
    }
    let about = "Silent: the share of the time in which no byte was in transit on any connection (or, for each \
                 connection, on that one), although calls were outstanding, which is always the case in a closed \
                 loop; and how long such gaps lasted. A link without a delay watched the bytes, in separate windows. \
                 If it was awake most of the time, the link itself was the limit. Bars show gaps by length: each \
                 covers gaps a quarter longer than the previous one, starting at 1 µs.";
    vec![Block::about(about), Block::Table(gaps)]
}

fn verdict(verdict: &StackVerdict) -> Markup {
    let (class, badge) = badge(verdict.judgement.limit);
    html! {
        article.verdict data-limit=(badge) {
            h3 {
                (verdict.stack)
                small { (bound(&verdict.conditions())) }
                span class={ "badge " (class) } { (badge) }
            }
            p { (bound(&verdict.text)) }
            p.advice { b { "To change:" } " " (bound(&verdict.advice)) }
        }
    }
}

/// Returns the badge's class and text.
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

pub(super) fn method(results: &LabResults) -> Vec<String> {
    let settings = &results.settings;
    let pinned = facts::pinned(settings.client_cpus.as_ref(), settings.server_cpus.as_ref());
    let size = results.points.first().map_or(ByteSize(0), |window| window.point.size_bytes);
    let load = format!(
        "The load is a closed loop: one worker per call in flight; each makes a call when its previous one has ended. \
         Messages have {size} of payload. A ping-pong is a bidi stream per worker with one message in flight."
    );
    [pinned, load].into_iter().chain(METHOD.map(str::to_owned)).collect()
}

const METHOD: [&str; 6] = [
    "Variants are measured in short, interleaved windows, in forward and then reverse order (ABBA), so slow phases \
     of the machine affect all of them. An adaptive channel has a longer warm-up, to find its number of lanes.",
    "A delay is a link in user space between client and server, which holds each byte for half of it either way, \
     in order; it passes connections on one by one. Without a delay both talk directly.",
    "Connections are counted in the kernel, at the server’s side. Processor time and context switches are the \
     kernel’s, of either process. System calls are counted by strace, and gaps between bytes by a link without a \
     delay, in windows whose rates are not used.",
    "Ideal scaling is the rate of the fastest lone call, times the calls in flight.",
    "A variant with several connections is compared with one connection, and the adaptive channel with the best \
     number, by the ratios of windows of the same round. Intervals are 95 % intervals with Bonferroni correction \
     for the number of variants at each load, but not across loads. A gain requires that the interval excludes 1 \
     and that the ratio exceeds the noise floor, which is the largest difference of one connection from itself.",
    "What limits a stack is derived from its line over one connection: it scales while it moves at least half of \
     what ideal scaling gives; one connection is the limit where a gain of 1.15 times or more by several is shown; \
     a side’s processors limit from 88 % on.",
];
