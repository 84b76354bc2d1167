//! Breakdown of the difference between gRPC and a JSON API, one change per row.

use thalweg_measure::figures::{percent, time};
use thalweg_measure::wording::enumerated;

use super::super::case::Case;
use super::super::cell_pair::{CellColumns, CellPair, median, message, protocol, same_message, size};
use super::super::cells::{Cells, EndpointCell};
use super::super::endpoint::Endpoint;
use super::super::question::Question;
use super::super::results::JsonResults;
use crate::echo::Protocol;

/// Steps from gRPC to a JSON API over HTTP/1.1, with the change in each.
const STEPS: [(Protocol, &str); 4] = [
    (Protocol::Grpc, ""),
    (Protocol::ConnectH2, "the format (JSON instead of Protobuf)"),
    (Protocol::JsonH2, "a REST path instead of the gRPC method’s path"),
    (Protocol::JsonHttp1, "HTTP/1.1 instead of HTTP/2"),
];

pub(super) fn parts(results: &JsonResults, cells: &Cells) -> Question {
    // Each row is compared with the one above it.
    let of_shape = |shape| {
        let at = |(protocol, _)| cells.at(&Endpoint::ours(protocol), Case::plain(shape));
        let mut above = None;
        let steps = STEPS.into_iter().filter_map(at).filter(|cell| cell.latency.is_some());
        steps.map(|cell| cells.pair(cell, above.replace(cell))).collect::<Vec<_>>()
    };
    let rows: Vec<CellPair<'_>> = results.settings.featured().into_iter().flat_map(of_shape).collect();
    let table = CellColumns::default()
        .words("Message", message)
        .words("Protocol", protocol)
        .figure("Median", time, median)
        .figure("Change from above", signed, change)
        .figure("Client encoding and decoding", time, |pair| Some(conversion(pair.one)))
        .figure("Server CPU time", time, |pair| Some(pair.one.latency.as_ref()?.cpu_ns?.1))
        .figure("Request bytes", size, |pair| Some(pair.one.bodies()?.0))
        .figure("Response bytes", size, |pair| Some(pair.one.bodies()?.1))
        .table(rows.iter().copied());
    let sentences = rows.chunk_by(same_message).filter_map(sentence).collect();
    Question { id: "parts", title: "Where the difference comes from", sentences, table }
}

fn change(step: &CellPair<'_>) -> Option<f64> {
    Some(median(step)? - step.of_other(EndpointCell::p50)?)
}

/// Returns the client's encoding and decoding time, ns.
fn conversion(cell: &EndpointCell) -> f64 {
    cell.stage("client-encode") + cell.stage("client-decode")
}

fn signed(ns: f64) -> String {
    if ns < 0.0 { format!("−{}", time(-ns)) } else { format!("+{}", time(ns)) }
}

fn sentence(steps: &[CellPair<'_>]) -> Option<String> {
    let [first, changes @ ..] = steps else { return None };
    let whole = changes.last()?.with_other(Some(first.one));
    let more = change(&whole)?;
    let description = |step: &CellPair<'_>| {
        let new = STEPS.iter().find(|(protocol, _)| *protocol == step.one.endpoint.protocol)?.1;
        Some(format!("{} for {new}", signed(change(step)?)))
    };
    let parts: Vec<String> = changes.iter().filter_map(description).collect();
    let more_bytes = whole.quotient(EndpointCell::bytes)? - 1.0;
    let client = conversion(whole.one) - conversion(first.one);
    let of_client = if more > 0.0 && client > 0.0 {
        format!(" Encoding and decoding in the client are {} of it.", percent((client / more).min(1.0)))
    } else {
        String::new()
    };
    let difference =
        if more > 0.0 { format!("{} longer", time(more)) } else { format!("{} less time", time(-more)) };
    let doubt = if whole.latency().differs() { "" } else { " (no difference is shown)" };
    Some(format!(
        "With {}, JSON over HTTP/1.1 takes {difference} than gRPC{doubt}: {}. Its bodies have {} more \
         bytes.{of_client}",
        message(first),
        enumerated(&parts),
        percent(more_bytes.max(0.0)),
    ))
}
