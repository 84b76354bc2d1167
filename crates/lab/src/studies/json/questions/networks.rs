//! Effect of a network on the difference.

use thalweg_measure::figures::time;

use super::super::case::Case;
use super::super::cell_pair::{CellColumns, CellPair, doubted, median, network, protocol, sentences, server};
use super::super::cells::{Cells, EndpointCell};
use super::super::endpoint::Endpoint;
use super::super::question::Question;
use super::super::results::JsonResults;
use crate::echo::Protocol;
use crate::load::gathered::distinct;

pub(super) fn networks(results: &JsonResults, cells: &Cells) -> Question {
    let of_case = |case| {
        let grpc = cells.at(&Endpoint::reference(), case);
        let measured = cells.of_case(case).filter(|cell| is_apart(cells, cell));
        measured.map(move |cell| cells.pair(cell, grpc.filter(|grpc| grpc.endpoint != cell.endpoint)))
    };
    let cases = cases(results, cells);
    // A single case has nothing to compare with.
    let cases = if cases.len() < 2 { Vec::new() } else { cases };
    let rows: Vec<CellPair<'_>> = cases.into_iter().flat_map(of_case).collect();
    let table = CellColumns::default()
        .words("Network", network)
        .words("Server", server)
        .words("Protocol", protocol)
        .figure("Median", time, median)
        .figure("p99", time, |pair| Some(pair.one.latency.as_ref()?.all.p99 as f64))
        .field("÷ gRPC at our server", |pair| doubted(pair.latency()))
        .table(rows.iter().copied());
    let factor = |pair: &CellPair<'_>| {
        let is_meant = pair.one.endpoint == Endpoint::ours(Protocol::JsonHttp1);
        Some(format!("{} ({})", pair.latency().factor().filter(|_| is_meant)?, network(pair)))
    };
    let sentences = sentences(
        &rows,
        |_, _| true,
        factor,
        |_, factors| {
            format!(
                "Time of JSON over HTTP/1.1 relative to gRPC, by network: {factors}. Network delay adds to both."
            )
        },
    );
    Question { id: "networks", title: "Over a network", sentences, table }
}

/// Returns the published message's cases: without a network, and over each network.
pub(super) fn cases(results: &JsonResults, cells: &Cells) -> Vec<Case> {
    let plain = Case::plain(results.settings.published);
    let is_far =
        |case: &Case| case.is_far() && !case.gzip && !case.new_connection && case.shape == plain.shape;
    let far = cells.all.iter().map(|cell| cell.case).filter(is_far);
    distinct(std::iter::once(plain).chain(far))
}

/// Returns whether the endpoint was also measured over a network.
fn is_apart(cells: &Cells, cell: &EndpointCell) -> bool {
    cells.all.iter().any(|other| other.endpoint == cell.endpoint && other.case.is_far())
}
