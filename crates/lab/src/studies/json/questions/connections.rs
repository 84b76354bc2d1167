//! A connection for each call against one that is kept, and HTTP/1.1 against HTTP/2.

use thalweg_measure::figures::{count, time};
use thalweg_measure::page::table::{Field, Table};

use super::super::case::{Case, title};
use super::super::cells::Cells;
use super::super::question::{Question, compared_field};
use super::super::results::JsonResults;
use super::super::way::Way;
use crate::echo::Protocol;

pub(super) fn connections(results: &JsonResults, cells: &Cells) -> Question {
    let mut table = Table::new(&[
        "Message",
        "Server",
        "Protocol",
        "Kept connection",
        "New one per call",
        "Difference",
        "New ÷ kept",
    ]);
    let mut sentences = Vec::new();
    for shape in results.settings.featured().into_iter().rev() {
        let mut factors = Vec::new();
        for cell in cells.of_case(Case { afresh: true, ..Case::plain(shape) }) {
            let Some(kept) = cells.at(&cell.way, Case::plain(shape)) else { continue };
            // They stand apart in time: the ratio has no interval.
            let (Some(new_ns), Some(kept_ns)) = (cell.p50(), kept.p50()) else { continue };
            table.rows.push(vec![
                Field::words(title(shape)),
                Field::words(cell.way.stack.to_string()),
                Field::words(cell.way.protocol.title()),
                Field::figure(Some(kept_ns), time),
                Field::figure(Some(new_ns), time),
                Field::figure(Some(new_ns - kept_ns), |ns| time(ns.max(0.0))),
                Field::figure(Some(new_ns / kept_ns), |ratio| format!("{ratio:.1}")),
            ]);
            if let Some(factor) = cells.apart(cell, kept).filter(|_| cell.way.stack.is_ours()) {
                factors.push(format!("{factor} for {}", cell.way.protocol.title()));
            }
        }
        if !factors.is_empty() {
            sentences.push(format!(
                "With {}, the time of a call on a new connection (for gRPC, a new channel) relative to a kept one is \
                 {}.",
                title(shape),
                thalweg_measure::wording::enumerated(&factors)
            ));
        }
    }
    Question { id: "connections", title: "A new connection for each call", sentences, table }
}

pub(super) fn versions(results: &JsonResults, cells: &Cells) -> Question {
    let mut table = Table::new(&[
        "Message",
        "Server",
        "HTTP/1.1, median",
        "HTTP/2, median",
        "÷",
        "HTTP/1.1, calls/s",
        "HTTP/2, calls/s",
        "÷",
    ]);
    let mut sentences = Vec::new();
    for shape in super::sizes::shapes(results) {
        let case = Case::plain(shape);
        for over_http1 in cells.of_case(case).filter(|cell| cell.way.protocol == Protocol::JsonHttp1) {
            let way = Way { protocol: Protocol::JsonH2, ..over_http1.way.clone() };
            let Some(over_h2) = cells.at(&way, case) else { continue };
            let latency = cells.latency_ratio(over_h2, over_http1);
            let rate = cells.rate_ratio(over_h2, over_http1);
            table.rows.push(vec![
                Field::words(title(shape)),
                Field::words(way.stack.to_string()),
                Field::figure(over_http1.p50(), time),
                Field::figure(over_h2.p50(), time),
                compared_field(latency),
                Field::figure(over_http1.per_s(), count),
                Field::figure(over_h2.per_s(), count),
                compared_field(rate),
            ]);
            if let Some(factor) = rate.factor().filter(|_| way.stack.is_ours()) {
                sentences.push(format!(
                    "With {}, our server handles {factor} as many JSON calls per second over one HTTP/2 connection as \
                     over several HTTP/1.1 connections.",
                    title(shape),
                ));
            }
        }
    }
    Question { id: "versions", title: "HTTP/1.1 or HTTP/2 for JSON", sentences, table }
}
