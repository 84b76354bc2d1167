//! A connection per call against a persistent one, and HTTP/1.1 against HTTP/2.

use thalweg_measure::figures::{count, time};

use super::super::case::{Case, title};
use super::super::cell_pair::{
    CellColumns, CellPair, doubted, median, message, per_s, protocol, same_message, sentences, server,
};
use super::super::cells::{Cells, EndpointCell};
use super::super::endpoint::Endpoint;
use super::super::question::Question;
use super::super::results::JsonResults;
use crate::echo::Protocol;

pub(super) fn connections(results: &JsonResults, cells: &Cells) -> Question {
    let of_shape = |shape| {
        let kept = move |cell: &EndpointCell| cells.at(&cell.endpoint, Case::plain(shape));
        let new_connections = cells.of_case(Case { new_connection: true, ..Case::plain(shape) });
        // They are far apart in time, so the ratio has no interval.
        new_connections
            .map(move |cell| cells.pair(cell, kept(cell)))
            .filter(|pair| pair.quotient(EndpointCell::p50).is_some())
    };
    let rows: Vec<CellPair<'_>> = results.settings.featured().into_iter().rev().flat_map(of_shape).collect();
    let longer = |pair: &CellPair<'_>| Some((median(pair)? - pair.of_other(EndpointCell::p50)?).max(0.0));
    let table = CellColumns::default()
        .words("Message", message)
        .words("Server", server)
        .words("Protocol", protocol)
        .figure("Kept connection", time, |pair| pair.of_other(EndpointCell::p50))
        .figure("New one per call", time, median)
        .figure("Difference", time, longer)
        .figure("New ÷ kept", |ratio| format!("{ratio:.1}"), |pair| pair.quotient(EndpointCell::p50))
        .table(rows.iter().copied());
    let factor = |pair: &CellPair<'_>| {
        let factor = pair.unpaired_ratio().filter(|_| pair.one.endpoint.stack.is_ours())?;
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
        let over_http1 = cells.of_case(case).filter(|cell| cell.endpoint.protocol == Protocol::JsonHttp1);
        let over_h2 = move |endpoint: &Endpoint| {
            cells.at(&Endpoint { protocol: Protocol::JsonH2, ..endpoint.clone() }, case)
        };
        over_http1.filter_map(move |cell| Some(cells.pair(over_h2(&cell.endpoint)?, Some(cell))))
    };
    let rows: Vec<CellPair<'_>> = results.shapes().into_iter().flat_map(of_shape).collect();
    let table = CellColumns::default()
        .words("Message", message)
        .words("Server", server)
        .figure("HTTP/1.1, median", time, |pair| pair.of_other(EndpointCell::p50))
        .figure("HTTP/2, median", time, median)
        .field("÷", |pair| doubted(pair.latency()))
        .figure("HTTP/1.1, calls/s", count, |pair| pair.of_other(EndpointCell::per_s))
        .figure("HTTP/2, calls/s", count, per_s)
        .field("÷", |pair| doubted(pair.rate()))
        .table(rows.iter().copied());
    let factor = |pair: &CellPair<'_>| pair.rate().factor().filter(|_| pair.one.endpoint.stack.is_ours());
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
