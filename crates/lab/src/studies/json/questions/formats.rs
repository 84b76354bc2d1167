//! MessagePack beside JSON and Protobuf, and compression.

use thalweg_measure::figures::{percent, time};
use thalweg_measure::page::table::{Field, Table};
use thalweg_measure::size::ByteSize;
use thalweg_measure::wording::enumerated;

use super::super::case::{Case, title};
use super::super::cells::Cells;
use super::super::question::{Question, compared_field};
use super::super::results::JsonResults;
use super::super::way::Way;
use crate::echo::{Protocol, Shape};
use crate::load::verdict::Compared;

pub(super) fn messagepack(results: &JsonResults, cells: &Cells) -> Question {
    let mut table =
        Table::new(&["Message", "Protocol", "Median", "÷ gRPC", "Request bytes", "Response bytes"]);
    let mut sentences = Vec::new();
    for shape in super::sizes::shapes(results) {
        let case = Case::plain(shape);
        let Some(grpc) = cells.at(&Way::reference(), case) else { continue };
        for protocol in [Protocol::Grpc, Protocol::MsgpackH2, Protocol::ConnectH2] {
            let Some(cell) = cells.at(&Way::ours(protocol), case) else { continue };
            let bodies = cell.latency.as_ref().map(|latency| latency.bodies);
            let compared = Some(cells.latency_ratio(cell, grpc)).filter(|_| protocol != Protocol::Grpc);
            let bytes = |bytes: Option<u64>| {
                Field::figure(bytes.map(|it| it as f64), |it| ByteSize(it as u64).to_string())
            };
            table.rows.push(vec![
                Field::words(title(shape)),
                Field::words(protocol.title()),
                Field::figure(cell.p50(), time),
                compared.map_or_else(|| Field::ratio(None), compared_field),
                bytes(bodies.map(|bodies| bodies.0)),
                bytes(bodies.map(|bodies| bodies.1)),
            ]);
        }
        let msgpack = cells.at(&Way::ours(Protocol::MsgpackH2), case);
        let json = cells.at(&Way::ours(Protocol::ConnectH2), case);
        let compared = msgpack.zip(json).map(|(msgpack, json)| cells.latency_ratio(msgpack, json));
        if let Some(factor) = compared.and_then(Compared::factor) {
            sentences.push(format!(
                "With {}, MessagePack takes {factor} as long as JSON over the same protocol.",
                title(shape),
            ));
        }
    }
    Question { id: "messagepack", title: "MessagePack", sentences, table }
}

pub(super) fn compression(cells: &Cells) -> Question {
    let mut table = Table::new(&[
        "Network",
        "Protocol",
        "Plain, median",
        "gzip, median",
        "gzip ÷ plain",
        "Plain, bytes",
        "gzip, bytes",
    ]);
    let mut told: Vec<String> = Vec::new();
    let mut is_random = false;
    for cell in cells.all.iter().filter(|cell| cell.case.gzip) {
        let plain = cells.at(&cell.way, Case { gzip: false, ..cell.case });
        let (Some(plain), Some(latency)) = (plain, &cell.latency) else { continue };
        let (Some(plain_ns), Some(gzip_ns)) = (plain.p50(), cell.p50()) else { continue };
        let bytes = |bodies: (u64, u64)| (bodies.0 + bodies.1) as f64;
        let plain_bytes = plain.latency.as_ref().map(|it| bytes(it.bodies));
        let network = cell.case.network().unwrap_or_else(|| "loopback".to_owned());
        let shown = |it: f64| ByteSize(it as u64).to_string();
        table.rows.push(vec![
            Field::words(network.clone()),
            Field::words(cell.way.protocol.title()),
            Field::figure(Some(plain_ns), time),
            Field::figure(Some(gzip_ns), time),
            Field::figure(Some(gzip_ns / plain_ns), |ratio| format!("{ratio:.2}")),
            Field::figure(plain_bytes, shown),
            Field::figure(Some(bytes(latency.bodies)), shown),
        ]);
        if let Some(plain_bytes) = plain_bytes {
            let fewer = 1.0 - bytes(latency.bodies) / plain_bytes.max(1.0);
            told.push(format!(
                "{} ({network}) transfers {} {} bytes and takes {} as long",
                cell.way.protocol.title(),
                percent(fewer.abs()),
                if fewer < 0.0 { "more" } else { "fewer" },
                cells.apart(cell, plain).unwrap_or_default(),
            ));
            is_random |= matches!(cell.case.shape, Shape::Strings { .. });
        }
    }
    let sentence = (!told.is_empty()).then(|| {
        let random = if is_random { " The strings are random letters, of 26 different ones." } else { "" };
        format!("With gzip in both directions: {}.{random}", enumerated(&told))
    });
    Question { id: "compression", title: "Compression", sentences: sentence.into_iter().collect(), table }
}
