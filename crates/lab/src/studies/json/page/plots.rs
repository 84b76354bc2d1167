//! Charts of spikes over time, and of ratios over the number of strings.

use thalweg_measure::figures::time;
use thalweg_measure::page::chart::{Chart, LineStyle, Mark, Series, Unit, XAxis, YAxis};
use thalweg_measure::page::section::{Block, When};
use thalweg_measure::statistics::Ratio;

use super::super::case::Case;
use super::super::cells::{Cells, EndpointCell, LatencyWindow};
use super::super::endpoint;
use super::super::results::JsonResults;
use crate::echo::{Protocol, Shape};
use crate::load::verdict::JudgedRatio;

/// Endpoints compared with gRPC, and their colours.
const COMPARED: [(Protocol, &str); 4] = [
    (Protocol::ConnectH2, "peer-3"),
    (Protocol::JsonH2, "peer-1"),
    (Protocol::JsonHttp1, "peer-5"),
    (Protocol::MsgpackH2, "peer-2"),
];
/// Fewest points of a line.
const POINTS_MIN: usize = 2;

/// Compares an endpoint's cell with gRPC's.
type Compare = fn(&Cells, &EndpointCell, &EndpointCell) -> JudgedRatio;

/// Returns the charts of a question.
pub(super) fn of_question(id: &str, results: &JsonResults, cells: &Cells) -> Vec<Block> {
    match id {
        "published" => spikes(results, cells),
        "sizes" => sizes(results, cells),
        _ => Vec::new(),
    }
}

fn spikes(results: &JsonResults, cells: &Cells) -> Vec<Block> {
    let published = cells.of_case(Case::plain(results.settings.published));
    let charts: Vec<Chart> = published.filter_map(spikes_of).collect();
    if charts.is_empty() {
        return Vec::new();
    }
    vec![
        Block::heading("Slow calls over time"),
        Block::about(
            "The windows of each variant are shown one after the other. Half of a window’s calls are below the line, \
             99 % below the dashes, and the dots are its ten longest calls.",
        ),
        Block::Multiples(charts),
    ]
}

/// Returns a chart of an endpoint's windows in sequence.
fn spikes_of(cell: &EndpointCell) -> Option<Chart> {
    let windows = &cell.latency.as_ref()?.windows;
    let colour = match (cell.endpoint.stack.is_ours(), cell.endpoint.protocol) {
        (true, _) => "ours",
        (false, Protocol::Grpc) => "peer-4",
        (false, _) => "peer-1",
    };
    let style = |name: &str, dash, width| LineStyle { dash, width, ..LineStyle::new(name, colour) };
    let mut begins = vec![0.0];
    let mut calls: Vec<(f64, u64, String)> = Vec::new();
    for (index, window) in windows.iter().enumerate() {
        let begin = begins[index];
        let seconds = |ns: u64| ns as f64 / 1e9;
        calls.extend(window.longest.iter().map(|call| {
            let note = format!(", {} into window {}", time(call.at_ns as f64), index + 1);
            (begin + seconds(call.at_ns), call.took_ns, note)
        }));
        begins.push(begin + seconds(window.took_ns));
    }
    calls.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let steps = |style, of: fn(&LatencyWindow) -> u64| {
        let values = windows.iter().chain(windows.last()).map(|window| Some(of(window) as f64));
        Series { x: begins.clone(), mark: Mark::Steps, ..Series::new(style, When::new(), values) }
    };
    let dots = Series {
        x: calls.iter().map(|(at, ..)| *at).collect(),
        notes: calls.iter().map(|(.., note)| note.clone()).collect(),
        mark: Mark::Dots,
        ..Series::new(2, When::new(), calls.iter().map(|(_, took, _)| Some(*took as f64)))
    };
    let inner = begins.get(1..windows.len()).unwrap_or_default();
    Some(Chart {
        id: format!("spikes {}", cell.endpoint),
        title: cell.endpoint.to_string(),
        x: XAxis {
            clock: true,
            marks: inner.iter().map(|&at| (at, String::new())).collect(),
            ..XAxis::default()
        },
        y: YAxis { unit: Unit::Time, log: true, group: Some("spikes"), ..YAxis::default() },
        styles: vec![style("median", &[], 2.0), style("p99", &[4, 3], 1.3), style("a call", &[1, 3], 1.3)],
        series: vec![steps(0, |it| it.p50), steps(1, |it| it.p99), dots],
        ..Chart::default()
    })
}

fn sizes(results: &JsonResults, cells: &Cells) -> Vec<Block> {
    let published_letters = match results.settings.published {
        Shape::Strings { letters, .. } => letters,
        // The same length as in the published message.
        _ => 20,
    };
    let mut counts: Vec<u64> = cells
        .all
        .iter()
        .filter_map(|cell| match cell.case.shape {
            Shape::Strings { count, letters } if letters == published_letters && count > 0 => {
                Some(u64::from(count))
            }
            _ => None,
        })
        .collect();
    counts.sort_unstable();
    counts.dedup();
    let styles =
        COMPARED.map(|(protocol, hue)| LineStyle { width: 2.0, ..LineStyle::new(protocol.title(), hue) });
    let figures: [(&str, Compare); 2] = [
        ("Time of a call, one at a time", |cells, endpoint, grpc| cells.latency_ratio(endpoint, grpc)),
        // Rates are inverted so that both show a multiple of a server’s time.
        ("Calls per second of a server: gRPC ÷ variant", |cells, endpoint, grpc| {
            cells.rate_ratio(grpc, endpoint)
        }),
    ];
    let line = |(index, (protocol, _)): (usize, (Protocol, &str)), compared: Compare| {
        let at = |&count: &u64| {
            let case = Case::plain(Shape::Strings { count: count as u32, letters: published_letters });
            let ours = endpoint::Endpoint::ours(protocol);
            let reference = endpoint::Endpoint::reference();
            compared(cells, cells.at(&ours, case)?, cells.at(&reference, case)?).ratio
        };
        let ratios: Vec<Option<Ratio>> = counts.iter().map(at).collect();
        let series = Series::new(index, When::new(), ratios.iter().map(|ratio| Some((*ratio)?.ratio)));
        (ratios.iter().flatten().count() >= POINTS_MIN)
            .then(|| series.intervals(ratios.iter().map(|ratio| (*ratio)?.interval)))
    };
    let chart = |(index, (title, compared)): (usize, (&str, Compare))| {
        let series: Vec<Series> =
            COMPARED.into_iter().enumerate().filter_map(|style| line(style, compared)).collect();
        (!series.is_empty()).then(|| Chart {
            id: format!("sizes-{index}"),
            title: title.to_owned(),
            x: XAxis::log(&counts, |count| format!("{count} strings")),
            y: YAxis {
                unit: Unit::Ratio,
                log: true,
                group: Some("sizes"),
                includes: vec![0.9, 1.1],
                line: Some(1.0),
                ..YAxis::default()
            },
            styles: styles.to_vec(),
            series,
            ..Chart::default()
        })
    };
    let charts: Vec<Chart> = figures.into_iter().enumerate().filter_map(chart).collect();
    if charts.is_empty() {
        return Vec::new();
    }
    vec![
        Block::heading("By the number of strings"),
        Block::about("Relative to gRPC, with 95 % intervals."),
        Block::Legend(styles.to_vec()),
        Block::Charts(charts),
    ]
}
