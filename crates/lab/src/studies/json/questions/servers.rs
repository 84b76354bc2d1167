//! Our server beside others', a gateway beside a server that transcodes itself, and what the shared port costs gRPC.

use thalweg_measure::figures::{count, time};
use thalweg_measure::page::table::{Field, Table};
use thalweg_measure::wording::enumerated;

use super::super::case::{Case, title};
use super::super::cells::{Cell, Cells};
use super::super::question::{Question, compared_field};
use super::super::results::JsonResults;
use super::super::way::Way;
use crate::echo::{Protocol, Shape};
use crate::load::verdict::Compared;

/// A gateway: a process, or a layer, that makes calls of gRPC of JSON.
const GATEWAY: &str = "grpc-gateway";
/// The variant of which the gateway is a layer of the server's process.
const INSIDE: &str = "inside";

fn rated(cells: &Cells, shape: Shape) -> Vec<&Cell> {
    cells.of_case(Case::plain(shape)).filter(|cell| cell.rate.is_some()).collect()
}

fn compared(compared: Compared) -> [Field; 2] {
    let figure = Field::ratio(compared.ratio);
    [figure, Field::words(compared.verdict.name())]
}

/// Every other server's rate beside ours by the same protocol: with prost's messages, and with views.
pub(super) fn servers(results: &JsonResults, cells: &Cells) -> Question {
    let mut table = Table::new(&[
        "Message",
        "Protocol",
        "Server",
        "Calls per second",
        "Our server",
        "Calls per second",
        "Ours ÷ theirs",
        "",
        "CPU time per call",
        "Ours",
    ]);
    let mut told = Vec::new();
    for shape in super::sizes::shapes(results) {
        let rated = rated(cells, shape);
        for (kind, way) in OURS {
            let mut factors = Vec::new();
            for theirs in rated.iter().filter(|cell| !cell.way.stack.is_ours()) {
                let protocol = theirs.way.protocol;
                let Some(ours) = rated.iter().find(|cell| cell.way == way(protocol)) else { continue };
                let ratio = cells.rate_ratio(ours, theirs);
                let mut row = vec![
                    Field::words(title(shape)),
                    Field::words(protocol.title()),
                    Field::words(theirs.way.stack.to_string()),
                    Field::figure(theirs.per_s(), count),
                    Field::words(ours.way.stack.to_string()),
                    Field::figure(ours.per_s(), count),
                ];
                row.extend(compared(ratio));
                row.extend([Field::figure(cpu(theirs), time), Field::figure(cpu(ours), time)]);
                table.rows.push(row);
                if let Some(factor) = ratio.factor().filter(|_| theirs.way.is_json_api()) {
                    let stack = &theirs.way.stack;
                    factors.push(format!("{factor} that of {stack} ({})", protocol.title()));
                }
            }
            if !factors.is_empty() {
                told.push(format!(
                    "With {}, the rate of transcoded JSON calls at our server{kind} is {}.",
                    title(shape),
                    enumerated(&factors)
                ));
            }
        }
    }
    Question { id: "servers", title: "Other servers", sentences: told, table }
}

type WayBy = fn(Protocol) -> Way;

/// The kinds of our server, as they are called in a sentence.
const OURS: [(&str, WayBy); 2] = [("", Way::ours), (" with views", Way::views)];

/// Processor time of a call at the server, ns.
fn cpu(cell: &Cell) -> Option<f64> {
    cell.rate.as_ref()?.cpu_ns.map(|(_, server)| server)
}

/// What it costs our server that messages are objects of their own, beside views of the bytes that came.
pub(super) fn views(results: &JsonResults, cells: &Cells) -> Question {
    let mut table = Table::new(&[
        "Message",
        "Protocol",
        "With prost’s messages, calls/s",
        "With views, calls/s",
        "÷",
        "",
        "CPU time per call",
        "With views",
    ]);
    let mut told = Vec::new();
    for shape in super::sizes::shapes(results) {
        let rated = rated(cells, shape);
        let mut factors = Vec::new();
        for views in rated.iter().filter(|cell| cell.way.is_views()) {
            let protocol = views.way.protocol;
            let Some(ours) = rated.iter().find(|cell| cell.way == Way::ours(protocol)) else { continue };
            let ratio = cells.rate_ratio(views, ours);
            let mut row = vec![
                Field::words(title(shape)),
                Field::words(protocol.title()),
                Field::figure(ours.per_s(), count),
                Field::figure(views.per_s(), count),
            ];
            row.extend(compared(ratio));
            row.extend([Field::figure(cpu(ours), time), Field::figure(cpu(views), time)]);
            table.rows.push(row);
            let by = |factor| format!("{factor} for {}", protocol.title());
            factors.extend(ratio.factor().map(by));
        }
        if !factors.is_empty() {
            told.push(format!(
                "With {}, the rate with views of the received bytes relative to prost’s messages is {}.",
                title(shape),
                enumerated(&factors)
            ));
        }
    }
    Question { id: "views", title: "What the server’s objects cost", sentences: told, table }
}

/// JSON by a gateway in a process of its own, in the server's, and by a server that transcodes itself.
pub(super) fn gateway(results: &JsonResults, cells: &Cells) -> Question {
    let heads = ["Message", "Server", "Protocol", "Median", "Longest", "÷ our server’s JSON", "÷ inside"];
    let mut table = Table::new(&heads);
    let mut told = Vec::new();
    for shape in results.settings.featured().into_iter().rev() {
        let case = Case::plain(shape);
        let by_json = || cells.of_case(case).filter(|cell| cell.way.protocol == Protocol::JsonHttp1);
        let inside = by_json().find(|cell| is_gateway(cell) && cell.way.stack.variant() == Some(INSIDE));
        let mut factors = Vec::new();
        for cell in by_json().filter(|cell| cell.way == Way::ours(Protocol::JsonHttp1) || is_gateway(cell)) {
            let ours = cells.at(&Way::ours(Protocol::JsonHttp1), case);
            let beside = |other: Option<&Cell>| {
                let other = other.filter(|other| is_gateway(cell) && other.way != cell.way)?;
                Some(cells.latency_ratio(cell, other))
            };
            let (by_ours, by_inside) = (beside(ours), beside(inside));
            let field =
                |compared: Option<Compared>| compared.map_or_else(|| Field::ratio(None), compared_field);
            table.rows.push(vec![
                Field::words(title(shape)),
                Field::words(cell.way.stack.to_string()),
                Field::words(cell.way.protocol.title()),
                Field::figure(cell.p50(), time),
                Field::figure(cell.latency.as_ref().map(|it| it.all.max as f64), time),
                field(by_ours),
                field(by_inside),
            ]);
            let factor = by_ours.and_then(Compared::factor);
            factors.extend(factor.map(|factor| format!("{factor} through {}", cell.way.stack)));
            if let Some(factor) = by_inside.and_then(Compared::factor) {
                told.push(format!(
                    "With {}, a gateway in its own process takes {factor} as long as one inside the server.",
                    title(shape)
                ));
            }
        }
        if !factors.is_empty() {
            told.push(format!(
                "With {}, the time of a JSON call relative to our server, which transcodes itself, is {}.",
                title(shape),
                enumerated(&factors)
            ));
        }
    }
    if told.is_empty() {
        // Our server alone is no comparison.
        table.rows.clear();
    }
    Question { id: "gateway", title: "A gateway or transcoding in the server", sentences: told, table }
}

fn is_gateway(cell: &Cell) -> bool {
    cell.way.stack.name() == GATEWAY
}

/// gRPC where the port serves JSON too, beside gRPC on a port of its own.
pub(super) fn port(results: &JsonResults, cells: &Cells) -> Question {
    let mut table = Table::new(&[
        "Message",
        "Shared, median",
        "Alone, median",
        "÷",
        "",
        "Shared, calls/s",
        "Alone, calls/s",
        "÷",
        "",
    ]);
    let mut told = Vec::new();
    for shape in super::sizes::shapes(results) {
        let case = Case::plain(shape);
        let shared = cells.at(&Way::reference(), case);
        let Some((shared, alone)) = shared.zip(cells.at(&Way::alone(), case)) else { continue };
        let (latency, rate) = (cells.latency_ratio(shared, alone), cells.rate_ratio(shared, alone));
        let mut row = vec![
            Field::words(title(shape)),
            Field::figure(shared.p50(), time),
            Field::figure(alone.p50(), time),
        ];
        row.extend(compared(latency));
        row.extend([Field::figure(shared.per_s(), count), Field::figure(alone.per_s(), count)]);
        row.extend(compared(rate));
        table.rows.push(row);
        if let Some(factor) = rate.factor() {
            told.push(format!(
                "With {}, a server that also serves JSON on the same port handles {factor} as many gRPC calls as one \
                 that does not.",
                title(shape),
            ));
        }
    }
    Question { id: "port", title: "What the shared port costs gRPC", sentences: told, table }
}
