//! Servers compared: ours and others, a gateway and direct transcoding, and the cost of a shared port for gRPC.

use thalweg_measure::figures::{count, time};

use super::super::case::Case;
use super::super::cell_pair::{
    CellColumns, CellPair, doubted, median, message, per_s, protocol, same_message, sentences, server,
    with_ratio_columns,
};
use super::super::cells::{Cells, EndpointCell};
use super::super::endpoint::Endpoint;
use super::super::question::Question;
use super::super::results::JsonResults;
use crate::echo::{Protocol, Shape};

/// A gateway: a process or layer that translates JSON to gRPC calls.
const GATEWAY: &str = "grpc-gateway";
/// Variant that runs the gateway as a layer in the server's process.
const INSIDE: &str = "inside";

/// Pairs servers at a message by rate: those that `is_meant`, each with the endpoint that `reference` returns.
fn rated(
    cells: &Cells,
    shape: Shape,
    is_meant: fn(&Endpoint) -> bool,
    reference: fn(Protocol) -> Endpoint,
) -> impl Iterator<Item = CellPair<'_>> {
    let rated = move || cells.of_case(Case::plain(shape)).filter(|cell| cell.rate.is_some());
    let meant = rated().filter(move |cell| is_meant(&cell.endpoint));
    meant.filter_map(move |cell| {
        let endpoint = reference(cell.endpoint.protocol);
        Some(cells.pair(cell, Some(rated().find(|cell| cell.endpoint == endpoint)?)))
    })
}

/// Returns the server's processor time per call, ns.
fn cpu(cell: &EndpointCell) -> Option<f64> {
    cell.rate.as_ref()?.cpu_ns.map(|(_, server)| server)
}

/// Compares every other server's rate with ours over the same protocol, with prost's messages and with views.
pub(super) fn servers(results: &JsonResults, cells: &Cells) -> Question {
    let of_shape = |shape| {
        let reference = [Endpoint::ours, Endpoint::views].into_iter();
        let all =
            reference.flat_map(move |ours| rated(cells, shape, |endpoint| !endpoint.stack.is_ours(), ours));
        // Ratios are ours ÷ theirs.
        all.filter_map(move |pair| Some(cells.pair(pair.other?, Some(pair.one))))
    };
    let rows: Vec<CellPair<'_>> = results.shapes().into_iter().flat_map(of_shape).collect();
    let theirs = |pair: &CellPair<'_>| pair.other.map(|theirs| theirs.endpoint.stack.to_string());
    let table = CellColumns::default()
        .words("Message", message)
        .words("Protocol", protocol)
        .words("Server", move |pair| theirs(pair).unwrap_or_default())
        .figure("Calls per second", count, |pair| pair.of_other(EndpointCell::per_s))
        .words("Our server", server)
        .figure("Calls per second", count, per_s);
    let table = with_ratio_columns(table, "Ours ÷ theirs", CellPair::rate)
        .figure("CPU time per call", time, |pair| pair.of_other(cpu))
        .figure("Ours", time, |pair| cpu(pair.one))
        .table(rows.iter().copied());
    let factor = |pair: &CellPair<'_>| {
        let factor = pair.rate().factor().filter(|_| pair.one.endpoint.is_json_api())?;
        Some(format!("{factor} that of {} ({})", theirs(pair)?, protocol(pair)))
    };
    let same = |one: &CellPair<'_>, next: &CellPair<'_>| {
        same_message(one, next) && one.one.endpoint.is_views() == next.one.endpoint.is_views()
    };
    let sentences = sentences(&rows, same, factor, |pair, factors| {
        let kind = if pair.one.endpoint.is_views() { " with views" } else { "" };
        let message = message(pair);
        format!("With {message}, the rate of transcoded JSON calls at our server{kind} is {factors}.")
    });
    Question { id: "servers", title: "Other servers", sentences, table }
}

/// Describes the cost of owned messages at our server, compared with views of the received bytes.
pub(super) fn views(results: &JsonResults, cells: &Cells) -> Question {
    let of_shape = |shape| rated(cells, shape, Endpoint::is_views, Endpoint::ours);
    let rows: Vec<CellPair<'_>> = results.shapes().into_iter().flat_map(of_shape).collect();
    let table = CellColumns::default()
        .words("Message", message)
        .words("Protocol", protocol)
        .figure("With prost’s messages, calls/s", count, |pair| pair.of_other(EndpointCell::per_s))
        .figure("With views, calls/s", count, per_s);
    let table = with_ratio_columns(table, "÷", CellPair::rate)
        .figure("CPU time per call", time, |pair| pair.of_other(cpu))
        .figure("With views", time, |pair| cpu(pair.one))
        .table(rows.iter().copied());
    let factor = |pair: &CellPair<'_>| Some(format!("{} for {}", pair.rate().factor()?, protocol(pair)));
    let sentences = sentences(&rows, same_message, factor, |pair, factors| {
        let message = message(pair);
        format!(
            "With {message}, the rate with views of the received bytes relative to prost’s messages is {factors}."
        )
    });
    Question { id: "views", title: "What the server’s objects cost", sentences, table }
}

/// Compares JSON through a separate gateway process, through one in the server's process, and by direct transcoding.
pub(super) fn gateway(results: &JsonResults, cells: &Cells) -> Question {
    let is_gateway = |cell: &EndpointCell| cell.endpoint.stack.name() == GATEWAY;
    let by_json = |case| cells.of_case(case).filter(|cell| cell.endpoint.protocol == Protocol::JsonHttp1);
    let of_shape = |shape| {
        let ours = cells.at(&Endpoint::ours(Protocol::JsonHttp1), Case::plain(shape));
        let is_row = move |cell: &&EndpointCell| {
            is_gateway(cell) || cell.endpoint == Endpoint::ours(Protocol::JsonHttp1)
        };
        let rows = by_json(Case::plain(shape)).filter(is_row);
        rows.map(move |cell| cells.pair(cell, ours.filter(|_| is_gateway(cell))))
    };
    let mut rows: Vec<CellPair<'_>> =
        results.settings.featured().into_iter().rev().flat_map(of_shape).collect();
    let inside = |pair: &CellPair<'_>| {
        let is_inside =
            |cell: &&EndpointCell| is_gateway(cell) && cell.endpoint.stack.variant() == Some(INSIDE);
        let inside = by_json(pair.one.case).find(is_inside);
        pair.with_other(inside.filter(|inside| is_gateway(pair.one) && inside.endpoint != pair.one.endpoint))
            .latency()
    };
    let through =
        |pair: &CellPair<'_>| Some(format!("{} through {}", pair.latency().factor()?, server(pair)));
    let by_inside = sentences(
        &rows,
        |_, _| false,
        |pair| inside(pair).factor(),
        |pair, factor| {
            let message = message(pair);
            format!(
                "With {message}, a gateway in its own process takes {factor} as long as one inside the server."
            )
        },
    );
    let by_ours = sentences(&rows, same_message, through, |pair, factors| {
        format!(
            "With {}, the time of a JSON call relative to our server, which transcodes itself, is {factors}.",
            message(pair)
        )
    });
    let sentences: Vec<String> = by_inside.into_iter().chain(by_ours).collect();
    if sentences.is_empty() {
        // Our server alone would have nothing to compare with.
        rows.clear();
    }
    let table = CellColumns::default()
        .words("Message", message)
        .words("Server", server)
        .words("Protocol", protocol)
        .figure("Median", time, median)
        .figure("Longest", time, |pair| Some(pair.one.latency.as_ref()?.all.max as f64))
        .field("÷ our server’s JSON", |pair| doubted(pair.latency()))
        .field("÷ inside", move |pair| doubted(inside(pair)))
        .table(rows);
    Question { id: "gateway", title: "A gateway or transcoding in the server", sentences, table }
}

/// Compares gRPC on a port shared with JSON with gRPC on its own port.
pub(super) fn port(results: &JsonResults, cells: &Cells) -> Question {
    let of_shape = |shape| cells.pair_at(Case::plain(shape), &Endpoint::reference(), &Endpoint::grpc_only());
    let rows: Vec<CellPair<'_>> = results.shapes().into_iter().filter_map(of_shape).collect();
    let table = CellColumns::default()
        .words("Message", message)
        .figure("Shared, median", time, median)
        .figure("Alone, median", time, |pair| pair.of_other(EndpointCell::p50));
    let table = with_ratio_columns(table, "÷", CellPair::latency)
        .figure("Shared, calls/s", count, per_s)
        .figure("Alone, calls/s", count, |pair| pair.of_other(EndpointCell::per_s));
    let table = with_ratio_columns(table, "÷", CellPair::rate).table(rows.iter().copied());
    let sentences = sentences(
        &rows,
        |_, _| false,
        |pair| pair.rate().factor(),
        |pair, factor| {
            format!(
                "With {}, a server that also serves JSON on the same port handles {factor} as many gRPC calls as one \
             that does not.",
                message(pair)
            )
        },
    );
    Question { id: "port", title: "What the shared port costs gRPC", sentences, table }
}
