//! Messages for which the difference matters, and for which JSON is as good.

use thalweg_measure::figures::{count, time};
use thalweg_measure::wording::{counted, enumerated};

use super::super::case::Case;
use super::super::cell_pair::{CellColumns, CellPair, median, message, per_s, protocol, with_ratio_columns};
use super::super::cells::Cells;
use super::super::endpoint::Endpoint;
use super::super::question::Question;
use super::super::results::JsonResults;
use crate::echo::Protocol;
use crate::load::verdict::Verdict;

const JSON: [Protocol; 3] = [Protocol::ConnectH2, Protocol::JsonH2, Protocol::JsonHttp1];

pub(super) fn sizes(results: &JsonResults, cells: &Cells) -> Question {
    let json = |case| {
        JSON.into_iter()
            .filter_map(move |it| cells.pair_at(case, &Endpoint::ours(it), &Endpoint::reference()))
    };
    let of_shape = |shape| {
        let grpc = cells.at(&Endpoint::reference(), Case::plain(shape));
        grpc.map(|grpc| cells.pair(grpc, None)).into_iter().chain(json(Case::plain(shape)))
    };
    let rows: Vec<CellPair<'_>> = results.shapes().into_iter().flat_map(of_shape).collect();
    let table = CellColumns::default()
        .words("Message", message)
        .words("Protocol", protocol)
        .figure("Median", time, median);
    let table =
        with_ratio_columns(table, "÷ gRPC", CellPair::latency).figure("Calls per second", count, per_s);
    let table = with_ratio_columns(table, "÷ gRPC", CellPair::rate).table(rows.iter().copied());
    // Networks count too: the slower the network, the smaller the difference.
    let far = super::networks::cases(results, cells).into_iter().filter(Case::is_far).flat_map(json);
    let all: Vec<CellPair<'_>> = rows.into_iter().chain(far).collect();
    let cases = |verdict| {
        let named = |pair: &CellPair<'_>| {
            let network = pair.one.case.network().map(|network| format!(" over a network ({network})"));
            format!("{} with {}{}", protocol(pair), message(pair), network.unwrap_or_default())
        };
        let of: Vec<String> =
            all.iter().filter(|pair| pair.latency().verdict == verdict).map(named).collect();
        (!of.is_empty()).then(|| format!("{}: {}", counted(of.len() as u64, "case"), enumerated(&of)))
    };
    let alike = match cases(Verdict::NoDifference) {
        None => "One call at a time, no case shows JSON within 10 % of gRPC.".to_owned(),
        Some(cases) => format!("One call at a time, JSON is within 10 % of gRPC in {cases}."),
    };
    let faster = cases(Verdict::Faster).map(|cases| format!("It is faster than gRPC in {cases}."));
    let sentences = [alike].into_iter().chain(faster).collect();
    Question { id: "sizes", title: "By message: when JSON is as fast", sentences, table }
}
