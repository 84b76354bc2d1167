//! The gaps between bytes, of all points that were watched.

use maud::{Markup, html};
use thalweg_measure::figures::{count, percent, time};
use thalweg_measure::page::parts::scrolled;

use crate::load::{Idle, Wire};
use crate::studies::channels::analyse::{Cell, Channels, Line, Panel};

/// A hop that was awake for more of the time than this may have been the limit of what it watched.
const HOP_BUSY_SHARE: f64 = 0.8;
/// The bars of a distribution of gaps: px.
const BAR_WIDTH: f64 = 3.0;
const BARS_HEIGHT: f64 = 22.0;

const COLUMNS: [&str; 12] = [
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

/// A row for each point that was watched.
pub(super) fn gaps(channels: &Channels) -> Markup {
    let watched: Vec<(&Panel, &Line, &Cell, &Wire)> = channels
        .points()
        .filter_map(|(panel, line, cell)| Some((panel, line, cell, cell.wire.as_ref()?)))
        .collect();
    if watched.is_empty() {
        return html! { p.about { "The wire was not observed." } };
    }
    html! {
        p.about {
            "Silent: the share of the time in which calls were outstanding (the load is a closed loop: always) and \
             no byte was under way on any connection, or on a connection for all of them; and how long such gaps \
             lasted. A hop without a delay watched the bytes, in windows of their own. Where it was awake most of \
             the time, it was itself the limit. Bars are gaps by their length, each a quarter longer than the one \
             before, from 1 µs on."
        }
        (scrolled(&html! {
            table {
                thead {
                    tr {
                        @for head in COLUMNS { th scope="col" { (head) } }
                    }
                }
                tbody {
                    @for (panel, line, cell, wire) in watched { (row(panel, line, cell, wire)) }
                }
            }
        }))
    }
}

fn row(panel: &Panel, line: &Line, cell: &Cell, wire: &Wire) -> Markup {
    let busy = (wire.hop_busy_share > HOP_BUSY_SHARE).then_some("failed");
    html! {
        tr {
            th scope="row" { (line.label()) }
            td { (panel.call) }
            td { (cell.in_flight) }
            td { (percent(wire.all.share)) }
            td { (percent(wire.each.share)) }
            (gap_fields(&wire.all))
            td { (bars(&wire.all)) }
            td class=[busy] { (percent(wire.hop_busy_share)) }
        }
    }
}

fn gap_fields(idle: &Idle) -> Markup {
    html! {
        td { (count(idle.gaps as f64)) }
        @for ns in [idle.p50_ns, idle.p90_ns, idle.p99_ns, idle.max_ns] {
            td { @if idle.gaps == 0 { "–" } @else { (time(ns as f64)) } }
        }
    }
}

/// A distribution as bars, the highest as high as the drawing. Where a bucket stands follows from its bound: they grow
/// by a quarter from 1 µs on.
fn bars(idle: &Idle) -> Markup {
    let most = idle.buckets.iter().map(|(_, gaps)| *gaps).max().unwrap_or(0) as f64;
    let index = |bound: u64| ((bound as f64 / 1000.0).max(1.0).ln() / 1.25_f64.ln()).round();
    let last = idle.buckets.last().map_or(0.0, |(bound, _)| index(*bound));
    let width = format!("{:.0}", (last + 1.0) * BAR_WIDTH);
    html! {
        svg.gaps width=(width) height=(BARS_HEIGHT) role="img" aria-label="Gaps by length" {
            @for &(bound, gaps) in &idle.buckets {
                (bar(index(bound), gaps as f64 / most, &format!("up to {}: {gaps}", time(bound as f64))))
            }
        }
    }
}

fn bar(index: f64, share: f64, title: &str) -> Markup {
    let height = (share * BARS_HEIGHT).max(1.0);
    html! {
        rect x=(format!("{:.0}", index * BAR_WIDTH))
            y=(format!("{:.1}", BARS_HEIGHT - height))
            width=(BAR_WIDTH - 0.5)
            height=(format!("{height:.1}")) {
            title { (title) }
        }
    }
}
