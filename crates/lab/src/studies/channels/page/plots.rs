//! The charts of a channels study: rates and latencies over calls in flight, and lanes over time.

use thalweg_measure::figures::short;
use thalweg_measure::page::chart::{Chart, Mark, Series, Unit, Way, XAxis, YAxis};
use thalweg_measure::page::section::{Block, Choice, When, when};

use crate::load::Strategy;
use crate::report::multiples::{Figure, Line, Multiples, hue, latencies, peer_colour, statistic};
use crate::stack::{OURS, Pair};
use crate::studies::channels::analyse::{self, Cell, Channels, Panel, label, network};

/// Rates and latencies over calls in flight.
pub(super) fn over_load(channels: &Channels) -> Vec<Block> {
    let ways = ways(channels);
    let rate = Figure {
        ends: |cell: &Cell| cell.rate_interval,
        windows: |cell| {
            cell.windows.iter().filter_map(|it| Some(it.outcome.as_ref().ok()?.rate_per_s)).collect()
        },
        ..Figure::of(|cell: &Cell| Some(cell.rate_per_s))
    };
    let latencies = latencies(|cell: &Cell| cell.latency, |cell| cell.p50_interval);
    let calls = channels.calls().into_iter().map(|call| (call.name(), call.name()));
    vec![
        Block::Choices(vec![Choice::buttons("call", "Kind of call", calls), statistic()]),
        Block::Legend(ways.clone()),
        Block::Heading("Operations per second; higher is better".to_owned()),
        Block::Multiples(panels(channels, &ways, "rate", Unit::Rate, vec![rate])),
        Block::Heading("Latency, {statistic}; lower is better".to_owned()),
        Block::Multiples(panels(channels, &ways, "latency", Unit::Time, latencies)),
        Block::Hint(
            "A plot for each delay, all on the same axes, both logarithmic. The grey line is ideal scaling: every call \
             in flight as fast as the lone call of the fastest line. Bars are intervals of 95 %, of rates and medians; \
             dots beside them the windows that a rate was told from. Point at a plot for its values."
                .to_owned(),
        ),
    ]
}

fn panels(
    channels: &Channels,
    ways: &[Way],
    name: &'static str,
    unit: Unit,
    figures: Vec<Figure<Cell>>,
) -> Vec<Chart> {
    let mut loads: Vec<u32> =
        channels.calls().into_iter().flat_map(|call| channels.in_flight(call)).collect();
    loads.sort_unstable();
    loads.dedup();
    let numbers: Vec<u64> = loads.iter().copied().map(u64::from).collect();
    let known = channels.ways();
    let note = |cell: &Cell| cell.connections.map(|it| format!(" ({it})")).unwrap_or_default();
    let multiples = Multiples {
        name,
        unit,
        ways: ways.to_vec(),
        x: XAxis::log(&numbers, |load| format!("{load} in flight")),
        figures,
        note: Some(note),
    };
    let chart = |(index, panel): (usize, &Panel)| {
        let line = line_of(&known, &loads);
        let lines: Vec<Line<'_, Cell>> = panel.lines.iter().map(line).collect();
        let mut chart = multiples.chart(index, &panel.network(), &lines);
        chart.when = when("call", [panel.call.name()]);
        if unit == Unit::Rate {
            chart.ways.push(Way { dash: &[1, 4], width: 1.6, ..muted("ideal scaling") });
            let ideal = loads.iter().map(|&load| panel.ideal(load));
            let series = Series::new(ways.len(), When::new(), ideal);
            chart.series.push(Series { is_reference: true, mark: Mark::Line, ..series });
        }
        chart
    };
    channels.panels.iter().enumerate().map(chart).collect()
}

fn muted(name: &str) -> Way {
    Way { key: name.to_owned(), name: name.to_owned(), colour: "muted".to_owned(), ..Way::default() }
}

fn line_of<'a, 'c>(
    known: &'a [(&Pair, Strategy)],
    loads: &'a [u32],
) -> impl Fn(&'c analyse::Line) -> Line<'c, Cell> + 'a {
    |line| Line {
        way: known.iter().position(|way| *way == (&line.pair, line.strategy)).unwrap_or_default(),
        cells: loads.iter().map(|&load| line.at(load)).collect(),
    }
}

fn ways(channels: &Channels) -> Vec<Way> {
    let ways = channels.ways();
    let mut peers: Vec<&str> = Vec::new();
    for (pair, _) in &ways {
        if pair.client.name() != OURS && !peers.contains(&pair.client.name()) {
            peers.push(pair.client.name());
        }
    }
    let way = |(pair, strategy): &(&Pair, Strategy)| {
        let (dash, width) = stroke(*strategy, pair.client.variant());
        let peer = peers.iter().position(|known| *known == pair.client.name());
        let name = label(pair, *strategy);
        let colour = peer.map_or("ours", peer_colour).to_owned();
        Way { key: name.clone(), name, colour, dash, width, ..Way::default() }
    };
    ways.iter().map(way).collect()
}

/// How a line is drawn, beside its hue: a dash for each way, and how wide it is.
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

/// Lanes of each line that has them over time, in the order of measuring.
pub(super) fn lanes(channels: &Channels) -> Vec<Block> {
    let lines = channels.panels.iter().flat_map(|panel| panel.lines.iter().map(move |line| (panel, line)));
    let charts: Vec<Chart> = lines
        .filter_map(|(panel, line)| {
            let cells: Vec<&Cell> = line.cells.iter().filter(|cell| !cell.lanes.is_empty()).collect();
            let title = format!("{}, {}, {}", line.pair.client, panel.call, network(panel.round_trip));
            (!cells.is_empty()).then(|| lanes_chart(title, &cells))
        })
        .collect();
    if charts.is_empty() {
        return vec![Block::About(
            "No channel of this study finds its own number of connections.".to_owned(),
        )];
    }
    vec![
        Block::About(
            "Connected lanes of the adaptive channel, from the beginning of the warm-up on; a line for each number of \
             calls in flight, which stands at its end."
                .to_owned(),
        ),
        Block::Multiples(charts),
    ]
}

fn lanes_chart(title: String, cells: &[&Cell]) -> Chart {
    let way = |(index, cell): (usize, &&Cell)| Way {
        key: format!("{title}, {}", cell.in_flight),
        name: format!("{} in flight", cell.in_flight),
        short: cell.in_flight.to_string(),
        colour: hue(index, cells.len()),
        width: 2.0,
        ..Way::default()
    };
    let series = |(index, cell): (usize, &&Cell)| {
        let last = cell.lanes.last().map(|it| (cell.window_ns as f64 / 1e9, it.lanes));
        let steps = cell.lanes.iter().map(|it| (it.at_ns as f64 / 1e9, it.lanes)).chain(last);
        let (x, y): (Vec<f64>, Vec<u32>) = steps.map(|(at, lanes)| (short(at), lanes)).unzip();
        let y = y.into_iter().map(|lanes| Some(f64::from(lanes)));
        Series { x, mark: Mark::Steps, ..Series::new(index, When::new(), y) }
    };
    Chart {
        id: format!("lanes {title}"),
        ways: cells.iter().enumerate().map(way).collect(),
        series: cells.iter().enumerate().map(series).collect(),
        x: XAxis { clock: true, marks: vec![(0.0, "measured from here".to_owned())], ..XAxis::default() },
        y: YAxis { unit: Unit::Count, includes: vec![0.0, 2.0], ..YAxis::default() },
        title,
        ..Chart::default()
    }
}
