//! The published comparison: one message echoed by all ways, one call at a time, spikes included; and the first calls.

use thalweg_measure::figures::{grouped, time, times};
use thalweg_measure::page::table::{Field, Table};

use super::super::case::{Case, title};
use super::super::cells::{Cell, Cells, Cold, SPIKE_FACTOR};
use super::super::plan::PUBLISHED;
use super::super::question::Question;
use super::super::results::JsonResults;
use super::super::way::Way;
use crate::echo::Protocol;

pub(super) fn published(results: &JsonResults, cells: &Cells) -> Question {
    let case = Case::plain(results.settings.published);
    let measured: Vec<&Cell> = cells.of_case(case).filter(|cell| cell.latency.is_some()).collect();
    let mut table = Table::new(&[
        "Server", "Protocol", "Calls", "Median", "p90", "p95", "p99", "p99.9", "Longest", "Mean", "Request",
        "Response",
    ]);
    for cell in &measured {
        let Some(latency) = &cell.latency else { continue };
        let all = &latency.all;
        let times = [Some(all.p50), Some(all.p90), all.p95, Some(all.p99), Some(all.p99_9), Some(all.max)];
        let mut row = vec![
            Field::words(cell.way.stack.to_string()),
            Field::words(cell.way.protocol.title()),
            Field::figure(Some(latency.calls as f64), grouped),
        ];
        let times = times.into_iter().map(|ns| ns.map(|ns| ns as f64));
        let means = [all.mean, latency.request(), latency.response()].map(Some);
        row.extend(times.chain(means).map(|ns| Field::figure(ns, time)));
        table.rows.push(row);
    }
    let sentences = sentences(cells, case, &measured);
    let title = if results.settings.published == PUBLISHED {
        "The published comparison"
    } else {
        "One call at a time, including outliers"
    };
    Question { id: "published", title, sentences, table }
}

fn sentences(cells: &Cells, case: Case, measured: &[&Cell]) -> Vec<String> {
    let mut sentences = Vec::new();
    let grpc = cells.at(&Way::reference(), case);
    let json = cells.at(&Way::ours(Protocol::JsonHttp1), case);
    if let Some(((grpc, grpc_all), (json, json_all))) = grpc
        .and_then(|cell| Some((cell, cell.latency.as_ref()?)))
        .zip(json.and_then(|cell| Some((cell, cell.latency.as_ref()?))))
    {
        let factor = cells.latency_ratio(json, grpc).factor().unwrap_or_default();
        sentences.push(format!(
            "Each call echoes {}, one call at a time. With our server the median is {} for gRPC and {} for JSON over \
             HTTP/1.1: {factor}.",
            title(case.shape),
            time(grpc_all.all.p50 as f64),
            time(json_all.all.p50 as f64),
        ));
        sentences.push(format!(
            "The published request time ends when the handler receives the request: {} for gRPC and {} for JSON on \
             average, {}. The published response time starts when the handler returns the response: {} for gRPC and \
             {} for JSON, {}.",
            time(grpc_all.request()),
            time(json_all.request()),
            as_long(json_all.request(), grpc_all.request()),
            time(grpc_all.response()),
            time(json_all.response()),
            as_long(json_all.response(), grpc_all.response()),
        ));
    }
    sentences.push(spikes(measured));
    sentences
}

fn as_long(one: f64, other: f64) -> String {
    if other > 0.0 { format!("{} as long", times(one / other)) } else { "without a ratio".to_owned() }
}

/// How many calls are far beyond the median, and the longest: whose it is and when it fell. The longest calls of each
/// window alone are kept with that; how many there are the histograms say.
fn spikes(measured: &[&Cell]) -> String {
    let latencies = || measured.iter().filter_map(|cell| Some((*cell, cell.latency.as_ref()?)));
    let all = grouped(latencies().map(|(_, latency)| latency.calls).sum::<u64>() as f64);
    let spikes: u64 = latencies().map(|(_, latency)| latency.spikes).sum();
    let late = latencies().filter(|(_, latency)| latency.spikes > 0);
    let late = late.flat_map(|(cell, latency)| latency.late_calls().map(move |call| (cell, call)));
    let Some((cell, longest)) = late.max_by_key(|(_, call)| call.took_ns) else {
        return format!("None of {all} calls took more than {SPIKE_FACTOR} times the median of its variant.");
    };
    format!(
        "{} of {all} calls took more than {SPIKE_FACTOR} times the median of their variant. The longest took {}; it \
         ended {} into window {} of {}.",
        grouped(spikes as f64),
        time(longest.took_ns as f64),
        time(longest.at_ns as f64),
        longest.window + 1,
        cell.way
    )
}

/// What a server’s first calls take, which are among those that are published.
pub(super) fn cold(results: &JsonResults, cells: &Cells) -> Question {
    let case = Case::plain(results.settings.published);
    let mut table = Table::new(&[
        "Server",
        "Protocol",
        "First call",
        "Next calls",
        "Their mean",
        "Their longest",
        "Warm median",
        "Cold ÷ warm",
    ]);
    let mut slowest: Option<(f64, &Cell, &Cold)> = None;
    for cell in cells.of_case(case) {
        let Some(cold) = &cell.cold else { continue };
        let warm = cell.p50();
        let factor = warm.map(|warm| cold.next.mean / warm);
        table.rows.push(vec![
            Field::words(cell.way.stack.to_string()),
            Field::words(cell.way.protocol.title()),
            Field::figure(Some(cold.first_ns as f64), time),
            Field::figure(Some(cold.calls as f64), grouped),
            Field::figure(Some(cold.next.mean), time),
            Field::figure(Some(cold.next.max as f64), time),
            Field::figure(warm, time),
            Field::figure(factor, times),
        ]);
        if let Some(factor) = factor.filter(|factor| slowest.is_none_or(|slowest| *factor > slowest.0)) {
            slowest = Some((factor, cell, cold));
        }
    }
    let sentence = slowest.map(|(factor, cell, cold)| {
        format!(
            "The slowest start, relative to the warm median: {}. Its first call takes {}, and the next {} calls take \
             {} that median on average. A comparison with so few calls measures the start.",
            cell.way,
            time(cold.first_ns as f64),
            cold.calls,
            times(factor),
        )
    });
    Question {
        id: "cold",
        title: "The first calls of a server",
        sentences: sentence.into_iter().collect(),
        table,
    }
}
