//! From which message on it matters, and when JSON is as good.

use thalweg_measure::figures::{count, time};
use thalweg_measure::page::table::{Field, Table};
use thalweg_measure::statistics::Ratio;
use thalweg_measure::wording::{counted, enumerated};

use super::super::case::{Case, title};
use super::super::cells::Cells;
use super::super::question::Question;
use super::super::results::JsonResults;
use super::super::way::Way;
use crate::echo::{Protocol, Shape};
use crate::load::verdict::Verdict;

const JSON: [Protocol; 3] = [Protocol::ConnectH2, Protocol::JsonH2, Protocol::JsonHttp1];

/// One's own, persons and the codec study's messages, then strings in the order of their sizes.
pub(super) fn shapes(results: &JsonResults) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = Vec::new();
    for result in &results.windows {
        let case = result.window.case;
        if case == Case::plain(case.shape) && !shapes.contains(&case.shape) {
            shapes.push(case.shape);
        }
    }
    shapes.sort_by_key(|shape| match shape {
        Shape::Own => (0, 0),
        Shape::Person => (1, 0),
        Shape::Study(kind) => (2, *kind as u64),
        Shape::Strings { count, letters } => (3, u64::from(*count) * u64::from(*letters)),
    });
    shapes
}

pub(super) fn sizes(results: &JsonResults, cells: &Cells) -> Question {
    let mut table =
        Table::new(&["Message", "Protocol", "Median", "÷ gRPC", "", "Calls per second", "÷ gRPC", ""]);
    let (mut alike, mut faster) = (Vec::new(), Vec::new());
    for shape in shapes(results) {
        let case = Case::plain(shape);
        let Some(grpc) = cells.at(&Way::reference(), case) else { continue };
        for protocol in [Protocol::Grpc].into_iter().chain(JSON) {
            let Some(cell) = cells.at(&Way::ours(protocol), case) else { continue };
            let latency = cells.latency_ratio(cell, grpc);
            let rate = cells.rate_ratio(cell, grpc);
            let is_grpc = protocol == Protocol::Grpc;
            let verdict = |verdict: Verdict| match verdict {
                Verdict::NotMeasured => String::new(),
                _ if is_grpc => String::new(),
                verdict => verdict.name().to_owned(),
            };
            let ratio = |ratio: Option<Ratio>| Field::ratio(ratio.filter(|_| !is_grpc));
            table.rows.push(vec![
                Field::words(title(shape)),
                Field::words(protocol.title()),
                Field::figure(cell.p50(), time),
                ratio(latency.ratio),
                Field::words(verdict(latency.verdict)),
                Field::figure(cell.per_s(), count),
                ratio(rate.ratio),
                Field::words(verdict(rate.verdict)),
            ]);
            let named = || format!("{} with {}", protocol.title(), title(shape));
            match latency.verdict {
                Verdict::NoDifference if !is_grpc => alike.push(named()),
                Verdict::Faster if !is_grpc => faster.push(named()),
                _ => {}
            }
        }
    }
    over_networks(results, cells, &mut alike, &mut faster);
    let mut sentences = Vec::new();
    sentences.push(match alike.as_slice() {
        [] => "One call at a time, no case shows JSON within 10 % of gRPC.".to_owned(),
        alike => format!("One call at a time, JSON is within 10 % of gRPC in {}.", cases_of(alike)),
    });
    if !faster.is_empty() {
        sentences.push(format!("It is faster than gRPC in {}.", cases_of(&faster)));
    }
    Question { id: "sizes", title: "By message: when JSON is as fast", sentences, table }
}

/// `2 cases: these and those`.
fn cases_of(named: &[String]) -> String {
    format!("{}: {}", counted(named.len() as u64, "case"), enumerated(named))
}

/// What a network leaves of the difference, too: the slower it is, the more is as good.
fn over_networks(results: &JsonResults, cells: &Cells, alike: &mut Vec<String>, faster: &mut Vec<String>) {
    for case in super::networks::cases(results, cells) {
        let Some(network) = case.network() else { continue };
        let Some(grpc) = cells.at(&Way::reference(), case) else { continue };
        for protocol in JSON {
            let Some(cell) = cells.at(&Way::ours(protocol), case) else { continue };
            let named =
                || format!("{} with {} over a network ({network})", protocol.title(), title(case.shape));
            match cells.latency_ratio(cell, grpc).verdict {
                Verdict::NoDifference => alike.push(named()),
                Verdict::Faster => faster.push(named()),
                _ => {}
            }
        }
    }
}
