//! The data of the comparison's plots, details and tables: aggregates of cells, no histograms.

use maud::Markup;
use serde::Serialize;
use thalweg_measure::figures::short;
use thalweg_measure::page::parts::script_json;
use thalweg_measure::statistics::Ratio;

use crate::load::verdict::{Compared, Verdict};
use crate::load::{Kind, Transport, Work};
use crate::stack::Pair;
use crate::studies::sizes::compare::{Against, ComparedCell, Comparison, Cost, ProcessCost, Side};

#[derive(Serialize)]
struct Data {
    /// Ours first, then peers, then mixed pairs.
    pairs: Vec<PairName>,
    sizes: Vec<Size>,
    lines: Vec<Line>,
}

#[derive(Serialize)]
struct PairName {
    name: String,
    /// It is in the matrix only.
    mixed: bool,
    client: String,
    server: String,
}

#[derive(Serialize)]
struct Size {
    bytes: u64,
    label: String,
}

#[derive(Serialize)]
struct Line {
    label: String,
    transport: String,
    operation: &'static str,
    /// Ratios between its inverse and this are noise.
    floor: f64,
    cells: Vec<Cell>,
}

/// Fields that most cells leave empty are left out.
#[derive(Serialize)]
struct Cell {
    /// Index into the sizes.
    size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<Numbers>,
    sides: Vec<SideData>,
}

#[derive(Serialize)]
struct SideData {
    /// Index into the pairs.
    pair: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    /// Median, p99 and maximum, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<[f64; 3]>,
    /// Of client and server: user ns, system ns, switches and system calls of an operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<[[Option<f64>; 4]; 2]>,
    /// The rate of each window; `null` for one that is in no ratio.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    windows: Vec<Option<f64>>,
    /// Why windows are in no ratio.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    excluded: Vec<String>,
    /// Windows whose client was the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    limited: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<Numbers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median: Option<Numbers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_verdict: Option<&'static str>,
}

/// Ratio, low end, high end, number of pairs.
type Numbers = (f64, Option<f64>, Option<f64>, usize);

/// What the page's script needs.
pub(super) fn json(comparison: &Comparison) -> Markup {
    let pairs: Vec<&Pair> =
        std::iter::once(&comparison.ours).chain(&comparison.peers).chain(&comparison.mixed).collect();
    let sizes = comparison.sizes();
    let names = pairs.iter().map(|pair| PairName {
        name: pair.to_string(),
        mixed: comparison.mixed.contains(pair),
        client: pair.client.to_string(),
        server: pair.server.to_string(),
    });
    let lines = comparison.lines().into_iter().map(|line| Line {
        label: line.0.label(),
        transport: line.1.to_string(),
        operation: operation(line.0),
        floor: short(comparison.noise.rate(line.0).exp()),
        cells: cells(comparison, line, &pairs),
    });
    script_json(&Data {
        pairs: names.collect(),
        lines: lines.collect(),
        sizes: sizes.iter().map(|&size| Size { bytes: size.0, label: size.to_string() }).collect(),
    })
}

fn cells(comparison: &Comparison, (kind, transport): (Kind, Transport), pairs: &[&Pair]) -> Vec<Cell> {
    let sizes = comparison.sizes();
    let of_cell = |cell: &ComparedCell| Cell {
        size: sizes.iter().position(|&size| size == cell.size).unwrap_or_default(),
        reference: cell.reference.map(|reference| short(reference.rate_per_s)),
        share: cell.reference.map(|reference| numbers(reference.share)),
        sides: sides(comparison, cell, pairs),
    };
    comparison.line(kind, transport).map(of_cell).collect()
}

fn sides(comparison: &Comparison, cell: &ComparedCell, pairs: &[&Pair]) -> Vec<SideData> {
    let ours = side_data(0, &cell.ours, None);
    let others = pairs.iter().enumerate().skip(1).filter_map(|(index, pair)| {
        let against = cell.against(pair)?;
        let side = side_data(index, &against.theirs, Some(against));
        // Of a mixed pair the page shows the rate and the ratio only.
        let is_mixed = comparison.mixed.contains(pair);
        Some(if is_mixed {
            SideData { latency: None, cost: None, windows: Vec::new(), ..side }
        } else {
            side
        })
    });
    std::iter::once(ours).chain(others).collect()
}

fn side_data(pair: usize, side: &Side, against: Option<&Against>) -> SideData {
    let rate = against.map(|against| against.rate);
    let median = against.and_then(|against| against.median);
    let mut excluded: Vec<String> =
        side.windows.iter().filter_map(|window| window.outcome.clone().err()).collect();
    let count = excluded.len();
    excluded.dedup();
    if let (Some(first), true) = (excluded.first_mut(), count > 0) {
        *first = format!("{count} of {} windows: {first}", side.windows.len());
    }
    SideData {
        pair,
        rate: side.rate_per_s.map(short),
        latency: side.latency.map(|it| [it.p50 as f64, it.p99 as f64, it.max as f64].map(short)),
        cost: side.cost.map(|Cost { client, server }| [client, server].map(process)),
        windows: side
            .windows
            .iter()
            .map(|window| window.outcome.as_ref().ok().map(|it| short(it.rate_per_s)))
            .collect(),
        excluded,
        limited: Some(side.limited()).filter(|&count| count > 0),
        ratio: rate.and_then(|it| it.ratio).map(numbers),
        verdict: rate.map(word),
        median: median.and_then(|it| it.ratio).map(numbers),
        median_verdict: median.map(word),
    }
}

fn process(cost: ProcessCost) -> [Option<f64>; 4] {
    let ProcessCost { user_ns, system_ns, switches, system_calls } = cost;
    [Some(user_ns), Some(system_ns), Some(switches), system_calls].map(|figure| figure.map(short))
}

fn numbers(ratio: Ratio) -> Numbers {
    let end = |end: f64| Some(short(end));
    let (low, high) = ratio.interval.map_or((None, None), |it| (end(it.low), end(it.high)));
    (short(ratio.ratio), low, high, ratio.pairs)
}

fn word(compared: Compared) -> &'static str {
    match compared.verdict {
        Verdict::Faster => "faster",
        Verdict::NoDifference => "same",
        Verdict::Slower => "slower",
        Verdict::CannotTell => "unclear",
        Verdict::NotMeasured => "missing",
    }
}

fn operation(kind: Kind) -> &'static str {
    match kind.work {
        Work::Call(call) => call.operation(),
        Work::Socket(_) => "messages",
    }
}
