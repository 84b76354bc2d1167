//! Charts of spikes over time, and of ratios over the number of strings.

use thalweg_measure::figures::time;
use thalweg_measure::page::chart::{Chart, Mark, Series, Unit, Way, XAxis, YAxis};
use thalweg_measure::page::section::{Block, When};
use thalweg_measure::statistics::Ratio;

use super::super::case::Case;
use super::super::cells::{Cells, LatencyWindow, WayCell};
use super::super::results::JsonResults;
use super::super::way;
use crate::echo::{Protocol, Shape};
use crate::load::verdict::Compared;

/// Ways compared with gRPC, and their colours.
const BESIDE: [(Protocol, &str); 4] = [
    (Protocol::ConnectH2, "peer-3"),
    (Protocol::JsonH2, "peer-1"),
    (Protocol::JsonHttp1, "peer-5"),
    (Protocol::MsgpackH2, "peer-2"),
];
/// Fewest points of a line.
const POINTS_MIN: usize = 2;

/// Compares a way's cell with gRPC's.
type Beside = fn(&Cells, &WayCell, &WayCell) -> Compared;

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

/// Returns a chart of a way's windows in sequence.
fn spikes_of(cell: &WayCell) -> Option<Chart> {
    let windows = &cell.latency.as_ref()?.windows;
    let colour = match (cell.way.stack.is_ours(), cell.way.protocol) {
        (true, _) => "ours",
        (false, Protocol::Grpc) => "peer-4",
        (false, _) => "peer-1",
    };
    let way = |name: &str, dash, width| Way { dash, width, ..Way::new(name, colour) };
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
    let steps = |way, of: fn(&LatencyWindow) -> u64| {
        let values = windows.iter().chain(windows.last()).map(|window| Some(of(window) as f64));
        Series { x: begins.clone(), mark: Mark::Steps, ..Series::new(way, When::new(), values) }
    };
    let dots = Series {
        x: calls.iter().map(|(at, ..)| *at).collect(),
        notes: calls.iter().map(|(.., note)| note.clone()).collect(),
        mark: Mark::Dots,
        ..Series::new(2, When::new(), calls.iter().map(|(_, took, _)| Some(*took as f64)))
    };
    let inner = begins.get(1..windows.len()).unwrap_or_default();
    Some(Chart {
        id: format!("spikes {}", cell.way),
        title: cell.way.to_string(),
        x: XAxis {
            clock: true,
            marks: inner.iter().map(|&at| (at, String::new())).collect(),
            ..XAxis::default()
        },
        y: YAxis { unit: Unit::Time, log: true, group: Some("spikes"), ..YAxis::default() },
        ways: vec![way("median", &[], 2.0), way("p99", &[4, 3], 1.3), way("a call", &[1, 3], 1.3)],
        series: vec![steps(0, |it| it.p50), steps(1, |it| it.p99), dots],
        ..Chart::default()
    })
}

fn sizes(results: &JsonResults, cells: &Cells) -> Vec<Block> {
    let asked = match results.settings.published {
        Shape::Strings { letters, .. } => letters,
        // The same length as in the published message.
        _ => 20,
    };
    let mut counts: Vec<u64> = cells
        .all
        .iter()
        .filter_map(|cell| match cell.case.shape {
            Shape::Strings { count, letters } if letters == asked && count > 0 => Some(u64::from(count)),
            _ => None,
        })
        .collect();
    counts.sort_unstable();
    counts.dedup();
    let ways = BESIDE.map(|(protocol, hue)| Way { width: 2.0, ..Way::new(protocol.title(), hue) });
    let figures: [(&str, Beside); 2] = [
        ("Time of a call, one at a time", |cells, way, grpc| cells.latency_ratio(way, grpc)),
        // Rates are inverted so that both show a multiple of a server’s time.
        ("Calls per second of a server: gRPC ÷ variant", |cells, way, grpc| cells.rate_ratio(grpc, way)),
    ];
    let line = |(index, (protocol, _)): (usize, (Protocol, &str)), compared: Beside| {
        let at = |&count: &u64| {
            let case = Case::plain(Shape::Strings { count: count as u32, letters: asked });
            let ours = way::Way::ours(protocol);
            let reference = way::Way::reference();
            compared(cells, cells.at(&ours, case)?, cells.at(&reference, case)?).ratio
        };
        let ratios: Vec<Option<Ratio>> = counts.iter().map(at).collect();
        let series = Series::new(index, When::new(), ratios.iter().map(|ratio| Some((*ratio)?.ratio)));
        (ratios.iter().flatten().count() >= POINTS_MIN)
            .then(|| series.intervals(ratios.iter().map(|ratio| (*ratio)?.interval)))
    };
    let chart = |(index, (title, compared)): (usize, (&str, Beside))| {
        let series: Vec<Series> =
            BESIDE.into_iter().enumerate().filter_map(|way| line(way, compared)).collect();
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
            ways: ways.to_vec(),
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
        Block::Legend(ways.to_vec()),
        Block::Charts(charts),
    ]
}
