//! A channels study as a page of its own.

mod data;
mod table;

use super::{Page, concat, escaped, filled, method, place, took};
use crate::analyse::channels::{Channels, Limit, Verdict, answer, place as delay, verdicts};
use crate::analyse::doubts;
use crate::figures::{bound, count, percent, time, times};
use crate::plan::Strategy;
use crate::results::{Idle, LabResults};
use crate::size::ByteSize;

const SECTIONS: &str = include_str!("../../../assets/channels.html");
const STYLE: &str = include_str!("../../../assets/channels.css");
const SCRIPT: &str = include_str!("../../../assets/channels.js");

/// A hop that was awake for more of the time than this may have been the limit of what it watched.
const HOP_BUSY_SHARE: f64 = 0.8;
/// The bars of a distribution of gaps: px.
const BAR_WIDTH: f64 = 3.0;
const BARS_HEIGHT: f64 = 22.0;

pub(super) fn page(results: &LabResults) -> String {
    let channels = Channels::of(results);
    let verdicts = verdicts(&channels, &results.settings);
    let lanes = data::lanes(&channels);
    let sections = filled(
        SECTIONS,
        &[
            ("verdicts", concat(verdicts.iter().map(verdict))),
            ("call_buttons", call_buttons(&channels)),
            ("lanes", lanes_section(&lanes)),
            ("wire", wire_section(&channels)),
            ("table", table::table(&channels)),
        ],
    );
    Page {
        title: "Channels study",
        style: STYLE,
        links: &[
            ("verdicts", "Verdicts"),
            ("plots", "Plots"),
            ("lanes", "Lanes"),
            ("wire", "Wire"),
            ("figures", "Figures"),
        ],
        eyebrow: eyebrow(results),
        answer: answer(&channels, results),
        place: place(results),
        cards: concat(verdicts.iter().filter(|it| it.round_trip.is_zero()).map(card)),
        doubts: doubts(results),
        sections,
        method: method_list(results),
        facts: method::facts(results),
        version: &results.versions.thalweg,
        notice: "",
        data: data::json(&channels, lanes),
        library: None,
        scripts: &[SCRIPT],
    }
    .html()
}

fn eyebrow(results: &LabResults) -> String {
    let day = results.started.split('T').next().unwrap_or_default();
    let took = took(results).map(|took| format!(", took {took}")).unwrap_or_default();
    format!("Channels study · {day}{took}")
}

/// What one connection moved, and what several did.
fn card(verdict: &Verdict) -> String {
    let judgement = &verdict.judgement;
    let (figure, detail) = match &judgement.gain {
        Some(gain) => (
            times(gain.factor).replace(" times", " ×"),
            format!("as much over more connections, with {} in flight", gain.in_flight),
        ),
        None => (
            format!("{}/s", count(judgement.last.rate_per_s)),
            format!(
                "over one connection with {} in flight; more connections gain nothing",
                judgement.last.in_flight
            ),
        ),
    };
    format!(
        r#"<div class="card"><h2>{}, {}</h2><p class="figure">{}</p><p>{}</p></div>"#,
        escaped(&verdict.stack),
        escaped(verdict.call.name()),
        escaped(&bound(&figure)),
        escaped(&bound(&detail))
    )
}

fn verdict(verdict: &Verdict) -> String {
    let (class, badge) = badge(verdict.judgement.limit);
    format!(
        r#"<article class="verdict" data-limit="{badge}"><h3>{}<small>{}, {}</small><span class="badge {class}">{badge}</span></h3><p>{}</p><p class="advice"><b>To change:</b> {}</p></article>"#,
        escaped(&verdict.stack),
        escaped(verdict.call.name()),
        escaped(&bound(&delay(verdict.round_trip))),
        escaped(&bound(&verdict.text)),
        escaped(&bound(&verdict.advice))
    )
}

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
    }
}

fn call_buttons(channels: &Channels) -> String {
    concat(channels.calls().into_iter().enumerate().map(|(index, call)| {
        format!(
            r#"<button type="button" data-value="{name}" aria-pressed="{pressed}">{name}</button>"#,
            name = call.name(),
            pressed = index == 0
        )
    }))
}

fn lanes_section(lanes: &[data::LanesPanel]) -> String {
    if lanes.is_empty() {
        return r#"<p class="about">No channel of this study finds its own number of connections.</p>"#
            .to_owned();
    }
    let figures = lanes.iter().enumerate().map(|(index, panel)| {
        format!(
            r#"<figure data-lanes="{index}"><figcaption>{}</figcaption></figure>"#,
            escaped(&bound(&panel.title))
        )
    });
    format!(
        r#"<p class="about">Connected lanes of the adaptive channel, from the beginning of the warm-up on; a line for each number of calls in flight, which stands at its end.</p><div class="multiples">{}</div>"#,
        concat(figures)
    )
}

/// The gaps between bytes, of all points that were watched.
fn wire_section(channels: &Channels) -> String {
    let cells = channels.panels.iter().flat_map(|panel| {
        panel.lines.iter().flat_map(move |line| line.cells.iter().map(move |cell| (panel, line, cell)))
    });
    let rows: Vec<String> = cells
        .filter_map(|(panel, line, cell)| {
            let wire = cell.wire.as_ref()?;
            let busy = if wire.hop_busy_share > HOP_BUSY_SHARE { r#" class="failed""# } else { "" };
            Some(format!(
                r#"<tr><th scope="row">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td>{}<td>{}</td><td{busy}>{}</td></tr>"#,
                escaped(&line.label()),
                escaped(panel.call.name()),
                cell.in_flight,
                percent(wire.all.share),
                percent(wire.each.share),
                gap_cells(&wire.all),
                bars(&wire.all),
                percent(wire.hop_busy_share)
            ))
        })
        .collect();
    if rows.is_empty() {
        return r#"<p class="about">The wire was not watched.</p>"#.to_owned();
    }
    let heads = [
        "Way",
        "Call",
        "In flight",
        "Silent",
        "Each connection",
        "Gaps",
        "p50",
        "p90",
        "p99",
        "max",
        "Distribution",
        "Hop awake",
    ];
    format!(
        r#"<p class="about">The share of the time in which calls were outstanding (the load is a closed loop: always) and no byte was under way on any connection, or on a connection for all of them; and how long such gaps lasted. A hop without a delay watched the bytes, in windows of their own. Where it was awake most of the time, it was itself the limit. Bars are gaps by their length, each a quarter longer than the one before, from 1 µs on.</p><div class="scroll" tabindex="0"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>"#,
        concat(heads.into_iter().map(|head| format!(r#"<th scope="col">{head}</th>"#))),
        rows.concat()
    )
}

fn gap_cells(idle: &Idle) -> String {
    let shown = |ns: u64| if idle.gaps == 0 { "–".to_owned() } else { time(ns as f64) };
    let cells = [
        count(idle.gaps as f64),
        shown(idle.p50_ns),
        shown(idle.p90_ns),
        shown(idle.p99_ns),
        shown(idle.max_ns),
    ];
    cells.map(|cell| format!("<td>{}</td>", escaped(&cell))).concat()
}

/// A distribution as bars, the highest as high as there is room. A bucket's place follows from its bound: they grow by a
/// quarter from 1 µs on.
fn bars(idle: &Idle) -> String {
    let most = idle.buckets.iter().map(|(_, gaps)| *gaps).max().unwrap_or(0) as f64;
    let place = |bound: u64| ((bound as f64 / 1000.0).max(1.0).ln() / 1.25_f64.ln()).round();
    let last = idle.buckets.last().map_or(0.0, |(bound, _)| place(*bound));
    let bar = |(bound, gaps): &(u64, u64)| {
        let height = (*gaps as f64 / most * BARS_HEIGHT).max(1.0);
        format!(
            r#"<rect x="{:.0}" y="{:.1}" width="{}" height="{height:.1}"><title>up to {}: {gaps}</title></rect>"#,
            place(*bound) * BAR_WIDTH,
            BARS_HEIGHT - height,
            BAR_WIDTH - 0.5,
            escaped(&time(*bound as f64))
        )
    };
    format!(
        r#"<svg class="gaps" width="{:.0}" height="{BARS_HEIGHT}" role="img" aria-label="Gaps by length">{}</svg>"#,
        (last + 1.0) * BAR_WIDTH,
        concat(idle.buckets.iter().map(bar))
    )
}

fn method_list(results: &LabResults) -> String {
    let settings = &results.settings;
    let pinned = match (&settings.client_cpus, &settings.server_cpus) {
        (Some(client), Some(server)) => {
            format!("Clients are kept on the processors {client}, servers on {server}.")
        }
        _ => "Client and server share the processors.".to_owned(),
    };
    let size = results.points.first().map_or(ByteSize(0), |window| window.point.size_bytes);
    let sentences = [
        pinned,
        format!(
            "The load is a closed loop: as many workers as calls in flight, each of which makes a call when the one before \
             has ended. Messages have {size} of payload. A ping-pong is a bidi stream of each worker with one message under \
             way."
        ),
        "At each point the ways take turns in short windows, there and back: what slows the machine slows all of them. An \
         adaptive channel is driven longer before it is measured, so that it has found its number of lanes."
            .to_owned(),
        "A delay is a link in user space between client and server, which holds each byte for half of it either way, in \
         order; it passes connections on one by one. Without a delay both talk directly."
            .to_owned(),
        "Connections are counted in the kernel, at the server’s side. Processor time and context switches are the kernel’s, \
         of either process. System calls are counted by strace, and gaps between bytes by a link without a delay, in windows \
         whose rates are not used."
            .to_owned(),
        "Ideal scaling is the rate of the fastest lone call, times the calls in flight.".to_owned(),
        "What limits a stack is told from its line over one connection: it scales while it moves at least half of what ideal \
         scaling gives; more connections gain where they move at least 1.15 times as much, beyond the noise floor, at more \
         than one point or at the last; a side’s processors limit from 88 % on."
            .to_owned(),
    ];
    concat(sentences.iter().map(|sentence| format!("<li>{}</li>", escaped(&bound(sentence)))))
}

/// Classes of lines: a hue for each stack, a dash for each way.
fn stroke(strategy: Strategy, variant: Option<&str>) -> (&'static str, f64) {
    match (strategy, variant) {
        (Strategy::Adaptive, _) => ("", 3.2),
        (Strategy::Fixed(1), _) => ("", 1.6),
        (Strategy::Fixed(_), Some("shared")) | (Strategy::PerWorker, _) => ("2 3", 2.0),
        (Strategy::Fixed(_), _) => ("8 4", 2.0),
        (Strategy::PerCall, _) => ("10 3 2 3", 1.6),
    }
}
