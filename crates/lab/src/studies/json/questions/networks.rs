//! What a network between both ends leaves of the difference.

use thalweg_measure::figures::time;
use thalweg_measure::page::table::{Field, Table};
use thalweg_measure::wording::enumerated;

use super::super::case::Case;
use super::super::cells::{Cell, Cells};
use super::super::question::{Question, compared_field};
use super::super::results::JsonResults;
use super::super::way::Way;
use crate::echo::Protocol;
use crate::load::verdict::Compared;

pub(super) fn networks(results: &JsonResults, cells: &Cells) -> Question {
    let mut table = Table::new(&["Network", "Server", "Protocol", "Median", "p99", "÷ gRPC at our server"]);
    let mut factors = Vec::new();
    let cases = cases(results, cells);
    // Nothing to compare with.
    let cases = if cases.len() < 2 { Vec::new() } else { cases };
    for case in cases {
        let network = case.network().unwrap_or_else(|| "loopback".to_owned());
        let grpc = cells.at(&Way::reference(), case);
        for cell in cells.of_case(case).filter(|cell| is_apart(cells, cell)) {
            let compared =
                grpc.filter(|grpc| grpc.way != cell.way).map(|grpc| cells.latency_ratio(cell, grpc));
            table.rows.push(vec![
                Field::words(network.clone()),
                Field::words(cell.way.stack.to_string()),
                Field::words(cell.way.protocol.title()),
                Field::figure(cell.p50(), time),
                Field::figure(cell.latency.as_ref().map(|it| it.all.p99 as f64), time),
                compared.map_or_else(|| Field::ratio(None), compared_field),
            ]);
            if cell.way == Way::ours(Protocol::JsonHttp1)
                && let Some(factor) = compared.and_then(Compared::factor)
            {
                factors.push(format!("{factor} ({network})"));
            }
        }
    }
    let sentences = (!factors.is_empty()).then(|| {
        format!(
            "Time of JSON over HTTP/1.1 relative to gRPC, by network: {}. Network delay adds to both.",
            enumerated(&factors)
        )
    });
    Question { id: "networks", title: "Over a network", sentences: sentences.into_iter().collect(), table }
}

/// The published message without a network, and over each.
pub(super) fn cases(results: &JsonResults, cells: &Cells) -> Vec<Case> {
    let plain = Case::plain(results.settings.published);
    let mut cases = vec![plain];
    for cell in &cells.all {
        let case = cell.case;
        let is_far = case.is_far() && !case.gzip && !case.afresh && case.shape == plain.shape;
        if is_far && !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

/// The way was measured over a network, too.
pub(super) fn is_apart(cells: &Cells, cell: &Cell) -> bool {
    cells.all.iter().any(|other| other.way == cell.way && other.case.is_far())
}
