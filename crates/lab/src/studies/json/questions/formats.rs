//! MessagePack against JSON and Protobuf, and compression.

use thalweg_measure::figures::{percent, time};

use super::super::case::Case;
use super::super::cell_pair::{
    CellColumns, CellPair, doubted, median, message, network, protocol, sentences, size,
};
use super::super::cells::{Cells, EndpointCell};
use super::super::endpoint::Endpoint;
use super::super::question::Question;
use super::super::results::JsonResults;
use crate::echo::{Protocol, Shape};

pub(super) fn messagepack(results: &JsonResults, cells: &Cells) -> Question {
    let of_shape = |shape| {
        let case = Case::plain(shape);
        let grpc = cells.at(&Endpoint::reference(), case);
        let pair = move |protocol| {
            let cell = cells.at(&Endpoint::ours(protocol), case)?;
            Some(cells.pair(cell, grpc.filter(|_| protocol != Protocol::Grpc)))
        };
        let protocols = [Protocol::Grpc, Protocol::MsgpackH2, Protocol::ConnectH2];
        protocols.into_iter().filter(move |_| grpc.is_some()).filter_map(pair)
    };
    let rows: Vec<CellPair<'_>> = results.shapes().into_iter().flat_map(of_shape).collect();
    let table = CellColumns::default()
        .words("Message", message)
        .words("Protocol", protocol)
        .figure("Median", time, median)
        .field("÷ gRPC", |pair| doubted(pair.latency()))
        .figure("Request bytes", size, |pair| Some(pair.one.bodies()?.0))
        .figure("Response bytes", size, |pair| Some(pair.one.bodies()?.1))
        .table(rows.iter().copied());
    let factor = |pair: &CellPair<'_>| {
        let is_meant = pair.one.endpoint.protocol == Protocol::MsgpackH2;
        let json = cells.at(&Endpoint::ours(Protocol::ConnectH2), pair.one.case).filter(|_| is_meant);
        pair.with_other(json).latency().factor()
    };
    let sentences = sentences(
        &rows,
        |_, _| false,
        factor,
        |pair, factor| {
            format!(
                "With {}, MessagePack takes {factor} as long as JSON over the same protocol.",
                message(pair)
            )
        },
    );
    Question { id: "messagepack", title: "MessagePack", sentences, table }
}

pub(super) fn compression(cells: &Cells) -> Question {
    let compressed = cells.all.iter().filter(|cell| cell.case.gzip);
    let plain = |cell: &EndpointCell| cells.at(&cell.endpoint, Case { gzip: false, ..cell.case });
    let rows = compressed.map(|cell| cells.pair(cell, plain(cell)));
    let rows: Vec<CellPair<'_>> = rows.filter(|pair| pair.quotient(EndpointCell::p50).is_some()).collect();
    let table = CellColumns::default()
        .words("Network", network)
        .words("Protocol", protocol)
        .figure("Plain, median", time, |pair| pair.of_other(EndpointCell::p50))
        .figure("gzip, median", time, median)
        .figure("gzip ÷ plain", |ratio| format!("{ratio:.2}"), |pair| pair.quotient(EndpointCell::p50))
        .figure("Plain, bytes", size, |pair| pair.of_other(EndpointCell::bytes))
        .figure("gzip, bytes", size, |pair| pair.one.bytes())
        .table(rows.iter().copied());
    let sentence = |pair: &CellPair<'_>| {
        let fewer = 1.0 - pair.quotient(EndpointCell::bytes)?;
        Some(format!(
            "{} ({}) transfers {} {} bytes and takes {} as long",
            protocol(pair),
            network(pair),
            percent(fewer.abs()),
            if fewer < 0.0 { "more" } else { "fewer" },
            pair.unpaired_ratio()?
        ))
    };
    let is_random = rows.iter().any(|pair| matches!(pair.one.case.shape, Shape::Strings { .. }));
    let random = if is_random { " The strings are random letters, of 26 different ones." } else { "" };
    let sentences = sentences(
        &rows,
        |_, _| true,
        sentence,
        |_, sentence| format!("With gzip in both directions: {sentence}.{random}"),
    );
    Question { id: "compression", title: "Compression", sentences, table }
}
