//! Charts of our own pair over message size.

use thalweg_measure::figures::short;
use thalweg_measure::page::chart::{Chart, LineStyle, Series, Unit, XAxis, YAxis};
use thalweg_measure::page::section::{Block, Choice, When, when};
use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::Interval;

use super::anchor::{anchor_of_line, kind_id};
use crate::load::gathered::MergedCell;
use crate::load::multiples::{Figure, statistic};
use crate::load::{Kind, Pattern, Transport, Work};
use crate::record::CallType;
use crate::studies::sizes::choice::words::short as short_name;
use crate::studies::sizes::lines::{SizesLine, SizesLines};

/// Selectable latencies.
const STATISTICS: [(&str, &str); 6] = [
    ("p50", "median"),
    ("mean", "mean"),
    ("p95", "p95"),
    ("p99", "p99"),
    ("p99.99", "p99.99"),
    ("max", "max"),
];
/// Option that shows lines of both transports.
const BOTH: &str = "both";

const LATENCY: &str = "{statistic} of one operation; lower is better";
const PACE: &str = "mean time from one message to the next of the same stream; lower is better";
const GAP: &str = "the longest time between two readings of the clock, of which there is one in 16 messages below \
                   4 KiB and one in each above; lower is better";
const RATE: &str = "calls, messages or round trips per second; higher is better";
const THROUGHPUT: &str = "payload bytes per second, one direction; higher is better";

pub(super) fn blocks(analysis: &SizesLines<'_>) -> Vec<Block> {
    let transports: Vec<String> = analysis.transports().iter().map(ToString::to_string).collect();
    let both = (transports.len() > 1).then(|| BOTH.to_owned());
    let offered = transports.into_iter().chain(both).map(|name| (name.clone(), name));
    let legend = analysis.kinds().into_iter().map(|kind| line_style(kind, None));
    let rate =
        Figure { windows: |cell| several(cell.figure_of_each_window(|it| it.rate_per_s)), ..Figure::rate() };
    let throughput = Figure {
        ends: |cell| {
            let bytes = cell.size().0 as f64;
            cell.rate_interval().map(|it| Interval { low: it.low * bytes, high: it.high * bytes })
        },
        windows: |cell| {
            let bytes = cell.size().0 as f64;
            several(cell.figure_of_each_window(|it| it.rate_per_s))
                .into_iter()
                .map(|rate| rate * bytes)
                .collect()
        },
        ..Figure::of(|cell| Some(cell.bytes_per_s()))
    };
    let latencies = Figure::latencies(&STATISTICS);
    let pace = Figure::of(|cell| Some(cell.pace()?.mean));
    let gap = Figure::of(|cell| Some(cell.pace()?.gap_max as f64));
    let time = || y(Unit::Time, true);
    let charts = vec![
        chart(analysis, "latency", ["Latency", LATENCY], time(), &latencies),
        chart(analysis, "rate", ["Rate", RATE], y(Unit::Rate, true), &[rate]),
        chart(analysis, "throughput", ["Throughput", THROUGHPUT], y(Unit::Throughput, false), &[throughput]),
        chart(analysis, "pace", ["Pace of one-way streams", PACE], time(), &[pace]),
        chart(analysis, "gap", ["Largest gap in one-way streams", GAP], time(), &[gap]),
    ];
    vec![
        Block::Choices(vec![Choice::buttons("transport", "Transport", offered), statistic(&STATISTICS)]),
        Block::Legend(legend.collect()),
        Block::Charts(charts),
        Block::hint(
            "Bars are 95 % intervals of rates, throughputs and medians; dots are the windows behind a rate. Hover over \
             a plot for its values; a click on a point leads to its windows. Drag to zoom, double-click to reset. The \
             size axis is logarithmic, with 0 B set apart.",
        ),
    ]
}

fn y(unit: Unit, log: bool) -> YAxis {
    YAxis { unit, log, is_free: true, ..YAxis::default() }
}

fn chart(
    analysis: &SizesLines<'_>,
    id: &str,
    [title, about]: [&str; 2],
    y: YAxis,
    figures: &[Figure],
) -> Chart {
    let (sizes, kinds, transports) = (analysis.sizes(), analysis.kinds(), analysis.transports());
    let of_kind = |&kind: &Kind| {
        [None].into_iter().chain(transports.iter().copied().map(Some)).map(move |it| line_style(kind, it))
    };
    let mut chart = Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        about: about.to_owned(),
        x: size_axis(&sizes),
        y,
        styles: kinds.iter().flat_map(of_kind).collect(),
        ..Chart::default()
    };
    for line in &analysis.lines {
        let plain =
            kinds.iter().position(|kind| *kind == line.kind).unwrap_or_default() * (transports.len() + 1);
        let both = plain + 1 + transports.iter().position(|it| *it == line.transport).unwrap_or_default();
        chart.series.extend(figures.iter().map(|figure| series(line, &sizes, figure, [plain, both])));
    }
    chart.series.retain(|series| !series.is_empty());
    chart
}

fn series(line: &SizesLine<'_>, sizes: &[ByteSize], figure: &Figure, [plain, both]: [usize; 2]) -> Series {
    let cells: Vec<Option<&MergedCell<'_>>> = sizes.iter().map(|&size| line.at(size)).collect();
    let shown = |transport: &str| {
        when("transport", [transport]).into_iter().chain(figure.when.clone()).collect::<When>()
    };
    Series {
        shown: vec![(plain, shown(&line.transport.to_string())), (both, shown(BOTH))],
        link: Some(anchor_of_line(line.kind, line.transport)),
        ..figure.series(&cells)
    }
}

/// Returns a logarithmic axis of sizes, with 0 B two powers of two below the smallest positive size.
pub(super) fn size_axis(sizes: &[ByteSize]) -> XAxis {
    let smallest = sizes.iter().map(|size| size.0).find(|&bytes| bytes > 0).unwrap_or(1) as f64;
    let at = |size: &ByteSize| if size.0 == 0 { smallest / 4.0 } else { size.0 as f64 }.log2();
    XAxis {
        at: sizes.iter().map(at).collect(),
        labels: sizes.iter().map(ToString::to_string).collect(),
        keys: sizes.iter().map(|size| size.0.to_string()).collect(),
        label: "message size".to_owned(),
        sync: Some("sizes"),
        ..XAxis::default()
    }
}

/// Returns the style of a kind of call, with its transport if both are shown.
fn line_style(kind: Kind, shown_transport: Option<Transport>) -> LineStyle {
    let named =
        |name: String| shown_transport.map_or(name.clone(), |transport| format!("{name}, {transport}"));
    let is_socket = matches!(kind.work, Work::Socket(_));
    let dash: &[u8] = match (is_socket, shown_transport == Some(Transport::Uds)) {
        (true, true) => &[7, 3, 2, 3],
        (true, false) => &[2, 3],
        (false, true) => &[7, 4],
        (false, false) => &[],
    };
    LineStyle {
        key: kind_id(kind),
        name: named(kind.label()),
        short: named(short_name(kind)),
        colour: colour(kind).to_owned(),
        dash,
        width: if is_socket { 1.6 } else { 2.2 },
        // Initially shows only the lower bound of latency and the upper bound of throughput.
        hidden: match kind.work {
            Work::Call(_) | Work::Socket(Pattern::OneWay) => false,
            Work::Socket(Pattern::Echo) => kind.in_flight > 1,
            Work::Socket(Pattern::Pipelined) => true,
        },
    }
}

/// Returns the style of a kind's line without a legend entry to hide it.
pub(super) fn unhidden(kind: Kind) -> LineStyle {
    LineStyle { key: String::new(), ..line_style(kind, None) }
}

/// Returns the rates, or none if there is only one.
fn several(rates: Vec<f64>) -> Vec<f64> {
    if rates.len() > 1 { rates.into_iter().map(short).collect() } else { Vec::new() }
}

fn colour(kind: Kind) -> &'static str {
    match kind.work {
        Work::Call(CallType::Unary) if kind.in_flight == 1 => "unary-one",
        Work::Call(call) => call.name(),
        Work::Socket(_) => "socket",
    }
}
