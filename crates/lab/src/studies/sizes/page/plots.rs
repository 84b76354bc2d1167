//! The data of the plots of our own pair.

use maud::Markup;
use serde::Serialize;
use thalweg_measure::figures::short;
use thalweg_measure::page::parts::script_json;

use super::anchor::kind_id;
use super::curves::{Curve, STEPS_PER_NINE, curves};
use super::timeline::{Timeline, timeline};
use crate::load::{Kind, LabResults, Pattern, Work};
use crate::record::CallType;
use crate::studies::sizes::choice::words::short as short_name;
use crate::studies::sizes::lines::{Analysis, Cell};

/// What the page's script draws.
#[derive(Serialize)]
struct PlotData {
    sizes: Vec<PlotSize>,
    transports: Vec<String>,
    kinds: Vec<PlotKind>,
    lines: Vec<PlotLine>,
    steps_per_nine: u32,
    curves: Vec<Curve>,
    time: Timeline,
}

#[derive(Serialize)]
struct PlotSize {
    bytes: u64,
    label: String,
}

#[derive(Serialize)]
struct PlotKind {
    id: String,
    label: String,
    /// For the end of a line.
    short: String,
    /// A custom property of the style sheet.
    colour: &'static str,
    /// Not shown until asked for.
    hidden: bool,
}

/// A column for each figure, as long as there are sizes; none where a line has no such figure.
#[derive(Serialize)]
struct PlotLine {
    kind: String,
    transport: String,
    /// Of messages one way the pace and the largest gap stand in place of a latency.
    pace: Option<Vec<Option<f64>>>,
    gap: Option<Vec<Option<f64>>>,
    p50: Option<Vec<Option<f64>>>,
    mean: Option<Vec<Option<f64>>>,
    p95: Option<Vec<Option<f64>>>,
    p99: Option<Vec<Option<f64>>>,
    p99_99: Option<Vec<Option<f64>>>,
    max: Option<Vec<Option<f64>>>,
    rate: Option<Vec<Option<f64>>>,
    /// The ends of the intervals, and the rates of the windows.
    rate_low: Option<Vec<Option<f64>>>,
    rate_high: Option<Vec<Option<f64>>>,
    p50_low: Option<Vec<Option<f64>>>,
    p50_high: Option<Vec<Option<f64>>>,
    windows: Vec<Vec<f64>>,
    throughput: Option<Vec<Option<f64>>>,
}

pub(super) fn plot_data(results: &LabResults, analysis: &Analysis) -> Markup {
    let sizes = analysis.sizes();
    let lines = analysis.lines.iter().map(|line| {
        let column = |figure: fn(&Cell) -> Option<f64>| {
            let column: Vec<_> = sizes.iter().map(|&size| line.at(size).and_then(figure)).collect();
            column.iter().any(Option::is_some).then_some(column)
        };
        PlotLine {
            kind: kind_id(line.kind),
            transport: line.transport.to_string(),
            pace: column(|cell| Some(cell.pace?.mean)),
            gap: column(|cell| Some(cell.pace?.gap_max as f64)),
            p50: column(|cell| Some(cell.latency?.p50 as f64)),
            mean: column(|cell| Some(cell.latency?.mean)),
            p95: column(|cell| Some(cell.latency?.p95? as f64)),
            p99: column(|cell| Some(cell.latency?.p99 as f64)),
            p99_99: column(|cell| Some(cell.latency?.p99_99 as f64)),
            max: column(|cell| Some(cell.latency?.max as f64)),
            rate: column(|cell| Some(cell.rate_per_s)),
            rate_low: column(|cell| Some(short(cell.rate_interval?.low))),
            rate_high: column(|cell| Some(short(cell.rate_interval?.high))),
            p50_low: column(|cell| Some(short(cell.p50_interval?.low))),
            p50_high: column(|cell| Some(short(cell.p50_interval?.high))),
            windows: sizes.iter().map(|&size| line.at(size).map(rates).unwrap_or_default()).collect(),
            throughput: column(|cell| Some(cell.bytes_per_s)),
        }
    });
    let data = PlotData {
        lines: lines.collect(),
        kinds: analysis
            .kinds()
            .into_iter()
            .map(|kind| PlotKind {
                id: kind_id(kind),
                label: kind.label(),
                short: short_name(kind),
                colour: colour(kind),
                // The lower bound of latency and the upper bound of throughput are enough for a first look.
                hidden: match kind.work {
                    Work::Call(_) | Work::Socket(Pattern::OneWay) => false,
                    Work::Socket(Pattern::Echo) => kind.in_flight > 1,
                    Work::Socket(Pattern::Pipelined) => true,
                },
            })
            .collect(),
        transports: analysis.transports().iter().map(ToString::to_string).collect(),
        steps_per_nine: STEPS_PER_NINE,
        curves: curves(results),
        time: timeline(results),
        sizes: sizes.iter().map(|&size| PlotSize { bytes: size.0, label: size.to_string() }).collect(),
    };
    script_json(&data)
}

/// Of the windows that can be used; none where there is one alone.
fn rates(cell: &Cell) -> Vec<f64> {
    let rates: Vec<f64> = cell
        .windows
        .iter()
        .filter_map(|window| Some(short(window.outcome.as_ref().ok()?.rate_per_s)))
        .collect();
    if rates.len() > 1 { rates } else { Vec::new() }
}

fn colour(kind: Kind) -> &'static str {
    match kind.work {
        Work::Call(CallType::Unary) if kind.in_flight == 1 => "unary-one",
        Work::Call(call) => call.name(),
        Work::Socket(_) => "socket",
    }
}
