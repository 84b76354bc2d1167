//! Where the difference between gRPC and a JSON API comes from: one thing changes from row to row.

use thalweg_measure::figures::{percent, time};
use thalweg_measure::page::table::{Field, Table};
use thalweg_measure::size::ByteSize;
use thalweg_measure::wording::enumerated;

use super::super::case::{Case, title};
use super::super::cells::{Cell, Cells};
use super::super::question::Question;
use super::super::results::JsonResults;
use super::super::way::Way;
use crate::echo::{Protocol, Shape};

/// From gRPC to a JSON API over HTTP/1.1, and what is new in each.
const STEPS: [(Protocol, &str); 4] = [
    (Protocol::Grpc, ""),
    (Protocol::ConnectH2, "the format (JSON instead of Protobuf)"),
    (Protocol::JsonH2, "a REST path instead of the gRPC method’s path"),
    (Protocol::JsonHttp1, "HTTP/1.1 instead of HTTP/2"),
];

pub(super) fn parts(results: &JsonResults, cells: &Cells) -> Question {
    let mut table = Table::new(&[
        "Message",
        "Protocol",
        "Median",
        "Change from above",
        "Client encoding and decoding",
        "Server CPU time",
        "Request bytes",
        "Response bytes",
    ]);
    let mut sentences = Vec::new();
    for shape in results.settings.featured() {
        let case = Case::plain(shape);
        let steps: Vec<(&Cell, &str)> = STEPS
            .into_iter()
            .filter_map(|(protocol, what)| Some((cells.at(&Way::ours(protocol), case)?, what)))
            .filter(|(cell, _)| cell.latency.is_some())
            .collect();
        let mut above = None;
        for (cell, _) in &steps {
            let Some(latency) = &cell.latency else { continue };
            let (p50, (there, back)) = (latency.all.p50 as f64, latency.bodies);
            table.rows.push(vec![
                Field::words(title(shape)),
                Field::words(cell.way.protocol.title()),
                Field::figure(Some(p50), time),
                Field::figure(above.map(|above| p50 - above), signed),
                Field::figure(Some(conversion(cell)), time),
                Field::figure(latency.cpu_ns.map(|(_, server)| server), time),
                Field::figure(Some(there as f64), |_| ByteSize(there).to_string()),
                Field::figure(Some(back as f64), |_| ByteSize(back).to_string()),
            ]);
            above = Some(p50);
        }
        sentences.extend(sentence(cells, shape, &steps));
    }
    Question { id: "parts", title: "Where the difference comes from", sentences, table }
}

/// What the client takes to encode and decode, ns.
fn conversion(cell: &Cell) -> f64 {
    cell.stage("client-encode") + cell.stage("client-decode")
}

fn signed(ns: f64) -> String {
    if ns < 0.0 { format!("−{}", time(-ns)) } else { format!("+{}", time(ns)) }
}

fn sentence(cells: &Cells, shape: Shape, steps: &[(&Cell, &str)]) -> Option<String> {
    let [(first, _), .., (last, _)] = steps else { return None };
    let (grpc, json) = (first.p50()?, last.p50()?);
    let more = json - grpc;
    let said = |pair: &[(&Cell, &str)]| {
        let step = pair[1].0.p50()? - pair[0].0.p50()?;
        Some(format!("{} for {}", signed(step), pair[1].1))
    };
    let parts: Vec<String> = steps.windows(2).filter_map(said).collect();
    let bytes = |cell: &Cell| cell.latency.as_ref().map(|it| (it.bodies.0 + it.bodies.1) as f64);
    let more_bytes = bytes(last)? / bytes(first)?.max(1.0) - 1.0;
    let client = conversion(last) - conversion(first);
    let of_client = if more > 0.0 && client > 0.0 {
        format!(" Encoding and decoding in the client are {} of it.", percent((client / more).min(1.0)))
    } else {
        String::new()
    };
    let difference =
        if more > 0.0 { format!("{} longer", time(more)) } else { format!("{} less time", time(-more)) };
    let doubt = if cells.latency_ratio(last, first).differs() { "" } else { " (no difference is shown)" };
    Some(format!(
        "With {}, JSON over HTTP/1.1 takes {difference} than gRPC{doubt}: {}. Its bodies have {} more \
         bytes.{of_client}",
        title(shape),
        enumerated(&parts),
        percent(more_bytes.max(0.0)),
    ))
}
