//! Charts and costs of the selected kind of call.

use thalweg_measure::figures::{count, time};
use thalweg_measure::page::chart::{Chart, LineStyle, Series, Unit, YAxis};
use thalweg_measure::page::section::{Block, Choice, When, when};
use thalweg_measure::page::table::{Columns, Table, TableCell};
use thalweg_measure::statistics::Ratio;

use super::names::{LineKey, line_name, line_style, socket};
use crate::load::gathered::MergedCell;
use crate::load::used::ResourceUsage;
use crate::studies::sizes::compare::{Against, ComparedCell, StacksCompared};
use crate::studies::sizes::page::plots::size_axis;

pub(super) fn blocks(comparison: &StacksCompared<'_>) -> Vec<Block> {
    let lines = comparison.lines();
    let ours = &comparison.ours;
    let named = lines.iter().enumerate().map(|(index, line)| (index.to_string(), line_name(*line)));
    // Calls in flight are selected initially.
    let initial = lines.iter().position(|(kind, _)| kind.label().contains("in flight")).unwrap_or(0);
    let mut styles: Vec<LineStyle> = vec![line_style(ours, None)];
    styles.extend(comparison.peers.iter().enumerate().map(|(index, pair)| line_style(pair, Some(index))));
    if comparison.cells.iter().any(|cell| cell.reference.is_some()) {
        styles.push(socket());
    }
    let ratio_about = format!(
        "{ours} ÷ peer with the 95 % interval; above 1, {ours} is faster. The band is the noise floor."
    );
    let mut blocks = vec![
        Block::Choices(vec![Choice { initial, ..Choice::list("line", "Calls", named) }]),
        Block::Legend(styles.clone()),
        Block::Charts(vec![
            Chart {
                id: "against-rate".to_owned(),
                title: "Rate".to_owned(),
                about: "operations per second, with the bare socket as the reference; higher is better"
                    .to_owned(),
                x: size_axis(&comparison.sizes()),
                y: YAxis { unit: Unit::Rate, log: true, ..YAxis::default() },
                styles: styles.clone(),
                series: numbered(&lines).flat_map(|line| rates(comparison, line)).collect(),
                ..Chart::default()
            },
            Chart {
                id: "against-ratio".to_owned(),
                title: "Ratio".to_owned(),
                about: ratio_about,
                x: size_axis(&comparison.sizes()),
                y: YAxis {
                    unit: Unit::Ratio,
                    log: true,
                    includes: vec![0.9, 1.1],
                    line: Some(1.0),
                    ..YAxis::default()
                },
                styles,
                series: numbered(&lines).flat_map(|line| ratios(comparison, line)).collect(),
                shades: numbered(&lines).map(|line| shade(comparison, line)).collect(),
                ..Chart::default()
            },
        ]),
        Block::heading("Cost per operation"),
    ];
    blocks.extend(numbered(&lines).map(|(index, line)| {
        Block::When(when("line", [index.to_string()]), vec![Block::Table(costs(comparison, line))])
    }));
    blocks.push(Block::hint(
        "Processor time is user + system, of the client’s and of the server’s process, divided by operations; so are \
         context switches, voluntary or not. System calls were counted in separate runs; – means not counted."
    ));
    blocks
}

fn numbered(lines: &[LineKey]) -> impl Iterator<Item = (usize, LineKey)> + '_ {
    lines.iter().copied().enumerate()
}

/// Returns a series of the line, if it has a value.
fn series(
    comparison: &StacksCompared<'_>,
    (index, (kind, transport)): (usize, LineKey),
    style: usize,
    of: impl Fn(&ComparedCell<'_>) -> Option<Ratio>,
) -> Option<Series> {
    let cell = |size| comparison.line(kind, transport).find(|cell| cell.size == size);
    let ratios: Vec<Option<Ratio>> = comparison.sizes().into_iter().map(|size| of(cell(size)?)).collect();
    let series =
        Series::new(style, when("line", [index.to_string()]), ratios.iter().map(|it| Some((*it)?.ratio)));
    (!series.is_empty()).then(|| series.intervals(ratios.iter().map(|it| (*it)?.interval)))
}

fn alone(value: f64) -> Ratio {
    Ratio { ratio: value, interval: None, pairs: 0 }
}

fn rates(comparison: &StacksCompared<'_>, line: (usize, LineKey)) -> Vec<Series> {
    let ours = series(comparison, line, 0, |cell| cell.ours.rate().map(alone));
    let peers = comparison.peers.iter().enumerate().map(|(index, pair)| {
        series(comparison, line, index + 1, |cell| cell.against(pair)?.theirs.rate().map(alone))
    });
    let socket = series(comparison, line, comparison.peers.len() + 1, |cell| {
        cell.reference.map(|reference| alone(reference.rate_per_s))
    });
    std::iter::once(ours).chain(peers).chain([socket]).flatten().collect()
}

fn ratios(comparison: &StacksCompared<'_>, line: (usize, LineKey)) -> Vec<Series> {
    let of_peer = |(index, pair)| series(comparison, line, index + 1, |cell| cell.against(pair)?.rate.ratio);
    comparison.peers.iter().enumerate().filter_map(of_peer).collect()
}

fn shade(comparison: &StacksCompared<'_>, (index, (kind, _)): (usize, LineKey)) -> ([f64; 2], When) {
    let floor = comparison.noise.rate(kind).exp();
    ([1.0 / floor, floor], when("line", [index.to_string()]))
}

/// Returns a table of costs with a row for each size and stack.
fn costs(comparison: &StacksCompared<'_>, (kind, transport): LineKey) -> Table {
    type Row<'a> = (&'a ComparedCell<'a>, String, &'a MergedCell<'a>, Option<&'a Against<'a>>);
    let processor = |used: Option<ResourceUsage>| {
        let below = used.map(|it| format!("{} + {}", time(it.user_ns), time(it.system_ns)));
        TableCell { below, ..TableCell::figure(used.map(ResourceUsage::ns), time) }
    };
    let columns = Columns::<Row<'_>>::default()
        .field("Size", |(cell, ..)| TableCell::figure(Some(cell.size.0 as f64), |_| cell.size.to_string()))
        .words("Stack", |(_, name, ..)| name.clone())
        .figure("Rate", |rate| format!("{}/s", count(rate)), |(.., side, _)| side.rate())
        .field(format!("{} ÷ it", comparison.ours), |(.., against)| {
            TableCell::ratio(against.and_then(|against| against.rate.ratio))
        })
        .field("Client CPU time", move |(.., side, _)| processor(side.client()))
        .field("Server CPU time", move |(.., side, _)| processor(side.server()))
        .figure("Client switches", few, |(.., side, _)| Some(side.client()?.switches))
        .figure("Server switches", few, |(.., side, _)| Some(side.server()?.switches))
        .figure("Client system calls", few, |(.., side, _)| Some(side.system_calls?.client_per_operation))
        .figure("Server system calls", few, |(.., side, _)| Some(side.system_calls?.server_per_operation));
    let rows = comparison.line(kind, transport).flat_map(|cell| {
        let peers = comparison.peers.iter().filter_map(move |pair| {
            let against = cell.against(pair)?;
            Some((cell, pair.to_string(), &against.theirs, Some(against)))
        });
        std::iter::once((cell, comparison.ours.to_string(), &cell.ours, None)).chain(peers)
    });
    let rows: Vec<Row<'_>> = rows.collect();
    let row_styles = rows.iter().map(|row| (row.3.is_none().then_some("own"), When::new())).collect();
    Table { row_styles, is_fixed: true, ..columns.table(rows) }
}

/// Formats two digits, or three decimals for small values.
fn few(value: f64) -> String {
    if value >= 0.0095 { thalweg_measure::figures::ratio(value) } else { format!("{value:.3}") }
}
