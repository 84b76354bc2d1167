//! Bars of a call and the conversions in it.

use maud::{Markup, html};
use thalweg_measure::figures::{bound, percent, time};

use crate::studies::codec::analyse::{Analysis, Share};
use crate::studies::codec::page::data::key;

/// A panel for each message at each number of calls in flight.
pub(super) fn bars(analysis: &Analysis) -> Markup {
    let mut numbers: Vec<u32> = analysis.shares.iter().map(|share| share.in_flight).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() {
        return html! { p.about { "No call was measured beside the conversions." } };
    }
    html! {
        p.about {
            "A call over a UNIX socket whose payload is as large as the message, measured in the same run with this \
             stack’s client and server (grey), and beside it what the four conversions of a call that echoes the \
             message take: the request is encoded and decoded, and so is the answer."
        }
        div.calls {
            @for in_flight in numbers { (group(analysis, in_flight)) }
        }
    }
}

fn group(analysis: &Analysis, in_flight: u32) -> Markup {
    let shares: Vec<&Share> = analysis.shares.iter().filter(|share| share.in_flight == in_flight).collect();
    html! {
        h3 {
            @if in_flight == 1 {
                "A call by itself: its median time"
            } @else {
                (in_flight) " calls in flight: processor time of both sides, for a call"
            }
        }
        div.bars {
            @for shares in shares.chunk_by(|a, b| a.data == b.data) { (panel(shares)) }
        }
    }
}

/// The shares are of one message.
fn panel(shares: &[&Share]) -> Markup {
    let most = shares.iter().map(|share| share.whole_ns()).fold(0.0, f64::max);
    html! {
        figure {
            figcaption { b { (shares[0].data) } }
            @for share in shares { (row(share, most)) }
        }
    }
}

fn row(share: &Share, most: f64) -> Markup {
    let width = |ns: f64| format!("width:{:.2}%", 100.0 * ns / most);
    let whole = format!(
        "{}: {} of {}, in {} bytes",
        share.codec,
        time(share.conversions_ns),
        time(share.whole_ns()),
        share.bytes.round()
    );
    html! {
        div.row title=(whole) {
            span { (share.codec) }
            span.track {
                i.call style=(width(share.call_ns)) {}
                i.part style={ (width(share.conversions_ns)) ";background:var(--" (key(&share.format)) ")" } {}
            }
            span { (bound(&percent(share.share()))) }
        }
    }
}
