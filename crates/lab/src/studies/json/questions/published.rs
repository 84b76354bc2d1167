//! The published comparison: one message, one call at a time, over all endpoints, with spikes and first calls.

use thalweg_measure::figures::{grouped, time, times};

use super::super::case::{Case, title};
use super::super::cell_pair::{CellColumns, CellPair, median, protocol, server};
use super::super::cells::{Cells, Cold, EndpointCell, Latencies, SPIKE_FACTOR};
use super::super::endpoint::Endpoint;
use super::super::plan::PUBLISHED;
use super::super::question::Question;
use super::super::results::JsonResults;
use crate::echo::Protocol;

type TimeOf = (&'static str, fn(&Latencies) -> Option<f64>);

const TIMES: [TimeOf; 9] = [
    ("Median", |it| Some(it.all.p50 as f64)),
    ("p90", |it| Some(it.all.p90 as f64)),
    ("p95", |it| Some(it.all.p95? as f64)),
    ("p99", |it| Some(it.all.p99 as f64)),
    ("p99.9", |it| Some(it.all.p99_9 as f64)),
    ("Longest", |it| Some(it.all.max as f64)),
    ("Mean", |it| Some(it.all.mean)),
    ("Request", |it| Some(it.request())),
    ("Response", |it| Some(it.response())),
];

pub(super) fn published(results: &JsonResults, cells: &Cells) -> Question {
    let case = Case::plain(results.settings.published);
    let measured: Vec<&EndpointCell> = cells.of_case(case).filter(|cell| cell.latency.is_some()).collect();
    let calls = |pair: &CellPair<'_>| Some(pair.one.latency.as_ref()?.calls as f64);
    let columns = CellColumns::default()
        .words("Server", server)
        .words("Protocol", protocol)
        .figure("Calls", grouped, calls);
    let columns = TIMES.into_iter().fold(columns, |columns, (header, ns)| {
        columns.figure(header, time, move |pair| ns(pair.one.latency.as_ref()?))
    });
    let table = columns.table(measured.iter().map(|cell| cells.pair(cell, None)));
    let sentences = sentences(cells, case, &measured);
    let title = if results.settings.published == PUBLISHED {
        "The published comparison"
    } else {
        "One call at a time, including outliers"
    };
    Question { id: "published", title, sentences, table }
}

fn sentences(cells: &Cells, case: Case, measured: &[&EndpointCell]) -> Vec<String> {
    let mut sentences = Vec::new();
    let both = cells.pair_at(case, &Endpoint::ours(Protocol::JsonHttp1), &Endpoint::reference());
    let latencies = both.and_then(|pair| pair.other?.latency.as_ref().zip(pair.one.latency.as_ref()));
    if let Some((pair, (grpc, json))) = both.zip(latencies) {
        sentences.push(format!(
            "Each call echoes {}, one call at a time. With our server the median is {} for gRPC and {} for JSON over \
             HTTP/1.1: {}.",
            title(case.shape),
            time(grpc.all.p50 as f64),
            time(json.all.p50 as f64),
            pair.latency().factor().unwrap_or_default(),
        ));
        sentences.push(format!(
            "The published request time ends when the handler receives the request: {} for gRPC and {} for JSON on \
             average, {}. The published response time starts when the handler returns the response: {} for gRPC and \
             {} for JSON, {}.",
            time(grpc.request()),
            time(json.request()),
            as_long(json.request(), grpc.request()),
            time(grpc.response()),
            time(json.response()),
            as_long(json.response(), grpc.response()),
        ));
    }
    sentences.push(spikes(measured));
    sentences
}

fn as_long(one: f64, other: f64) -> String {
    if other > 0.0 { format!("{} as long", times(one / other)) } else { "without a ratio".to_owned() }
}

/// Describes the number of spikes, and the longest call with its endpoint and time. Counts come from histograms; times
/// are kept only for each window's longest calls.
fn spikes(measured: &[&EndpointCell]) -> String {
    let latencies = || measured.iter().filter_map(|cell| Some((*cell, cell.latency.as_ref()?)));
    let all = grouped(latencies().map(|(_, latency)| latency.calls).sum::<u64>() as f64);
    let spikes: u64 = latencies().map(|(_, latency)| latency.spikes).sum();
    let late = latencies().filter(|(_, latency)| latency.spikes > 0);
    let late = late.flat_map(|(cell, latency)| latency.late_calls().map(move |call| (cell, call)));
    let Some((cell, (window, longest))) = late.max_by_key(|(_, (_, call))| call.took_ns) else {
        return format!("None of {all} calls took more than {SPIKE_FACTOR} times the median of its variant.");
    };
    format!(
        "{} of {all} calls took more than {SPIKE_FACTOR} times the median of their variant. The longest took {}; it \
         ended {} into window {} of {}.",
        grouped(spikes as f64),
        time(longest.took_ns as f64),
        time(longest.at_ns as f64),
        window + 1,
        cell.endpoint
    )
}

/// Describes a server’s first calls, which the published figures include.
pub(super) fn cold(results: &JsonResults, cells: &Cells) -> Question {
    let of_case = cells.of_case(Case::plain(results.settings.published));
    let rows: Vec<CellPair<'_>> =
        of_case.filter(|cell| cell.cold.is_some()).map(|cell| cells.pair(cell, None)).collect();
    let factor = |pair: &CellPair<'_>| Some(pair.one.cold.as_ref()?.next.mean / median(pair)?);
    let of = |figure: fn(&Cold) -> f64| move |pair: &CellPair<'_>| pair.one.cold.as_ref().map(figure);
    let table = CellColumns::default()
        .words("Server", server)
        .words("Protocol", protocol)
        .figure("First call", time, of(|cold| cold.first_ns as f64))
        .figure("Next calls", grouped, of(|cold| cold.calls as f64))
        .figure("Their mean", time, of(|cold| cold.next.mean))
        .figure("Their longest", time, of(|cold| cold.next.max as f64))
        .figure("Warm median", time, median)
        .figure("Cold ÷ warm", times, factor)
        .table(rows.iter().copied());
    let candidates = rows.iter().filter_map(|pair| Some((factor(pair)?, pair.one, pair.one.cold.as_ref()?)));
    let sentence = candidates.rev().max_by(|(a, ..), (b, ..)| a.total_cmp(b)).map(|(factor, cell, cold)| {
        format!(
            "The slowest start, relative to the warm median: {}. Its first call takes {}, and the next {} calls take \
             {} that median on average. A comparison with so few calls measures the start.",
            cell.endpoint,
            time(cold.first_ns as f64),
            cold.calls,
            times(factor),
        )
    });
    let sentences = sentence.into_iter().collect();
    Question { id: "cold", title: "The first calls of a server", sentences, table }
}
