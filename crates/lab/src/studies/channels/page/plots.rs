//! Charts of a channels study: rates and latencies over calls in flight, and lanes over time.

use thalweg_measure::figures::short;
use thalweg_measure::page::chart::{Chart, LineStyle, Mark, Series, Unit, XAxis, YAxis};
use thalweg_measure::page::section::{Block, Choice, When, when};

use crate::load::Strategy;
use crate::load::gathered::{MergedCell, distinct};
use crate::load::multiples::{ChartLine, Figure, Multiples, STATISTICS, hue, peer_colour, statistic};
use crate::record::LoadResult;
use crate::stack::{OURS, Pair};
use crate::studies::channels::analyse::{Channels, ChannelsLine, Panel, label, network};

/// Returns charts of rates and latencies over calls in flight.
pub(super) fn over_load(channels: &Channels<'_>) -> Vec<Block> {
    let styles = line_styles(channels);
    let calls = channels.calls().into_iter().map(|call| (call.name(), call.name()));
    vec![
        Block::Choices(vec![Choice::buttons("call", "Kind of call", calls), statistic(&STATISTICS)]),
        Block::Legend(styles.clone()),
        Block::heading("Operations per second; higher is better"),
        Block::Multiples(panels(channels, &styles, "rate", Unit::Rate, vec![Figure::rate()])),
        Block::heading("Latency, {statistic}; lower is better"),
        Block::Multiples(panels(channels, &styles, "latency", Unit::Time, Figure::latencies(&STATISTICS))),
        Block::hint(
            "A plot for each delay, all on the same axes, both logarithmic. The grey line is ideal scaling: every call \
             in flight as fast as the lone call of the fastest line. Bars are 95 % intervals of rates and medians; \
             dots next to them are the windows behind a rate. Hover over a plot for its values.",
        ),
    ]
}

fn panels(
    channels: &Channels<'_>,
    styles: &[LineStyle],
    name: &'static str,
    unit: Unit,
    figures: Vec<Figure>,
) -> Vec<Chart> {
    let mut loads: Vec<u32> =
        channels.calls().into_iter().flat_map(|call| channels.in_flight(call)).collect();
    loads.sort_unstable();
    loads.dedup();
    let numbers: Vec<u64> = loads.iter().copied().map(u64::from).collect();
    let known = channels.strategies();
    let note = |cell: &MergedCell<'_>| cell.connections().map(|it| format!(" ({it})")).unwrap_or_default();
    let multiples = Multiples {
        name,
        unit,
        styles: styles.to_vec(),
        x: XAxis::log(&numbers, |load| format!("{load} in flight")),
        figures,
        note: Some(note),
    };
    let chart = |(index, panel): (usize, &Panel<'_>)| {
        let style =
            |line: &ChannelsLine<'_>| known.iter().position(|known| *known == (line.pair, line.strategy));
        let line = |line| {
            let cells = loads.iter().map(|&load| ChannelsLine::at(line, load)).collect();
            (style(line).unwrap_or_default(), cells)
        };
        let lines: Vec<ChartLine<'_>> = panel.lines.iter().map(line).collect();
        let mut chart = multiples.chart(index, &panel.network(), &lines);
        chart.when = when("call", [panel.call.name()]);
        if unit == Unit::Rate {
            chart.styles.push(LineStyle {
                dash: &[1, 4],
                width: 1.6,
                ..LineStyle::new("ideal scaling", "muted")
            });
            let ideal = loads.iter().map(|&load| panel.ideal(load));
            let series = Series::new(styles.len(), When::new(), ideal);
            chart.series.push(Series { is_reference: true, mark: Mark::Line, ..series });
        }
        chart
    };
    channels.panels.iter().enumerate().map(chart).collect()
}

fn line_styles(channels: &Channels<'_>) -> Vec<LineStyle> {
    let strategies = channels.strategies();
    let clients = strategies.iter().map(|(pair, _)| pair.client.name());
    let peers = distinct(clients.filter(|name| *name != OURS));
    let style = |(pair, strategy): &(&Pair, Strategy)| {
        let (dash, width) = stroke(*strategy, pair.client.variant());
        let peer = peers.iter().position(|known| *known == pair.client.name());
        LineStyle { dash, width, ..LineStyle::new(label(pair, *strategy), peer.map_or("ours", peer_colour)) }
    };
    strategies.iter().map(style).collect()
}

/// Returns a line's dash pattern and width.
fn stroke(strategy: Strategy, variant: Option<&str>) -> (&'static [u8], f64) {
    match (strategy, variant) {
        (Strategy::Adaptive, _) => (&[], 3.2),
        (Strategy::Fixed(1), _) => (&[], 1.6),
        (Strategy::Fixed(_), Some("shared")) | (Strategy::PerWorker, _) => (&[2, 3], 2.0),
        (Strategy::Fixed(_), Some("distinct")) => (&[5, 2], 1.6),
        (Strategy::Fixed(_), _) => (&[8, 4], 2.0),
        (Strategy::PerCall, _) => (&[10, 3, 2, 3], 1.6),
    }
}

/// Returns charts of lanes over time, for each line that has them, in the order of measuring.
pub(super) fn lanes(channels: &Channels<'_>) -> Vec<Block> {
    let lines = channels.panels.iter().flat_map(|panel| panel.lines.iter().map(move |line| (panel, line)));
    let charts: Vec<Chart> = lines
        .filter_map(|(panel, line)| {
            let last = line.cells.iter().filter_map(|it| Some((it.point.in_flight, it.valid().last()?.1)));
            let cells: Vec<(u32, &LoadResult)> = last.filter(|(_, load)| !load.lanes.is_empty()).collect();
            let title = format!("{}, {}, {}", line.pair.client, panel.call, network(panel.round_trip));
            (!cells.is_empty()).then(|| lanes_chart(title, &cells))
        })
        .collect();
    if charts.is_empty() {
        return vec![Block::about("No channel of this study finds its own number of connections.")];
    }
    vec![
        Block::about(
            "Connected lanes of the adaptive channel from the start of the warm-up; one line per number of calls in \
             flight, labelled at its end.",
        ),
        Block::Multiples(charts),
    ]
}

/// Returns a chart of lanes from the last valid window of each number of calls in flight.
fn lanes_chart(title: String, cells: &[(u32, &LoadResult)]) -> Chart {
    let style = |(index, (in_flight, _)): (usize, &(u32, &LoadResult))| LineStyle {
        key: format!("{title}, {in_flight}"),
        name: format!("{in_flight} in flight"),
        short: in_flight.to_string(),
        colour: hue(index, cells.len()),
        width: 2.0,
        ..LineStyle::default()
    };
    let series = |(index, (_, load)): (usize, &(u32, &LoadResult))| {
        let last = load.lanes.last().map(|it| (load.duration_ns as f64 / 1e9, it.lanes));
        let steps = load.lanes.iter().map(|it| (it.at_ns as f64 / 1e9, it.lanes)).chain(last);
        let (x, y): (Vec<f64>, Vec<u32>) = steps.map(|(at, lanes)| (short(at), lanes)).unzip();
        let y = y.into_iter().map(|lanes| Some(f64::from(lanes)));
        Series { x, mark: Mark::Steps, ..Series::new(index, When::new(), y) }
    };
    Chart {
        id: format!("lanes {title}"),
        styles: cells.iter().enumerate().map(style).collect(),
        series: cells.iter().enumerate().map(series).collect(),
        x: XAxis { clock: true, marks: vec![(0.0, "measured from here".to_owned())], ..XAxis::default() },
        y: YAxis { unit: Unit::Count, includes: vec![0.0, 2.0], ..YAxis::default() },
        title,
        ..Chart::default()
    }
}
