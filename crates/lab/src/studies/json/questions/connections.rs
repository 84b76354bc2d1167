//! A connection per call against a persistent one, and HTTP/1.1 against HTTP/2.

use thalweg_measure::figures::{count, time};

use super::super::case::{Case, title};
use super::super::cell_pair::{
    CellColumns, CellPair, doubted, median, message, per_s, protocol, same_message, sentences, server,
};
use super::super::cells::{Cells, WayCell};
use super::super::question::Question;
use super::super::results::JsonResults;
use super::super::way::Way;
use crate::echo::Protocol;

pub(super) fn connections(results: &JsonResults, cells: &Cells) -> Question {
    let of_shape = |shape| {
        let kept = move |cell: &WayCell| cells.at(&cell.way, Case::plain(shape));
        let afresh = cells.of_case(Case { afresh: true, ..Case::plain(shape) });
        // They are far apart in time, so the ratio has no interval.
        afresh
            .map(move |cell| cells.pair(cell, kept(cell)))
            .filter(|pair| pair.quotient(WayCell::p50).is_some())
    };
    let rows: Vec<CellPair<'_>> = results.settings.featured().into_iter().rev().flat_map(of_shape).collect();
    let longer = |pair: &CellPair<'_>| Some((median(pair)? - pair.of_other(WayCell::p50)?).max(0.0));
    let table = CellColumns::default()
        .words("Message", message)
        .words("Server", server)
        .words("Protocol", protocol)
        .figure("Kept connection", time, |pair| pair.of_other(WayCell::p50))
        .figure("New one per call", time, median)
        .figure("Difference", time, longer)
        .figure("New ÷ kept", |ratio| format!("{ratio:.1}"), |pair| pair.quotient(WayCell::p50))
        .table(rows.iter().copied());
    let factor = |pair: &CellPair<'_>| {
        let factor = pair.apart().filter(|_| pair.one.way.stack.is_ours())?;
        Some(format!("{factor} for {}", protocol(pair)))
    };
    let sentences = sentences(&rows, same_message, factor, |pair, factors| {
        format!(
            "With {}, the time of a call on a new connection (for gRPC, a new channel) relative to a kept one is \
             {factors}.",
            message(pair)
        )
    });
    Question { id: "connections", title: "A new connection for each call", sentences, table }
}

pub(super) fn versions(results: &JsonResults, cells: &Cells) -> Question {
    let of_shape = |shape| {
        let case = Case::plain(shape);
        let over_http1 = cells.of_case(case).filter(|cell| cell.way.protocol == Protocol::JsonHttp1);
        let over_h2 = move |way: &Way| cells.at(&Way { protocol: Protocol::JsonH2, ..way.clone() }, case);
        over_http1.filter_map(move |cell| Some(cells.pair(over_h2(&cell.way)?, Some(cell))))
    };
    let rows: Vec<CellPair<'_>> = results.shapes().into_iter().flat_map(of_shape).collect();
    let table = CellColumns::default()
        .words("Message", message)
        .words("Server", server)
        .figure("HTTP/1.1, median", time, |pair| pair.of_other(WayCell::p50))
        .figure("HTTP/2, median", time, median)
        .field("÷", |pair| doubted(pair.latency()))
        .figure("HTTP/1.1, calls/s", count, |pair| pair.of_other(WayCell::per_s))
        .figure("HTTP/2, calls/s", count, per_s)
        .field("÷", |pair| doubted(pair.rate()))
        .table(rows.iter().copied());
    let factor = |pair: &CellPair<'_>| pair.rate().factor().filter(|_| pair.one.way.stack.is_ours());
    let sentences = sentences(
        &rows,
        |_, _| false,
        factor,
        |pair, factor| {
            format!(
                "With {}, our server handles {factor} as many JSON calls per second over one HTTP/2 connection as over \
             several HTTP/1.1 connections.",
                title(pair.one.case.shape)
            )
        },
    );
    Question { id: "versions", title: "HTTP/1.1 or HTTP/2 for JSON", sentences, table }
}
