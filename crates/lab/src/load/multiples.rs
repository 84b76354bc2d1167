//! Charts of a figure over a number, side by side on the same axes.

use thalweg_measure::page::chart::{Chart, LineStyle, Series, Unit, XAxis, YAxis, rounded};
use thalweg_measure::page::section::{Choice, When, when};
use thalweg_measure::statistics::Interval;

use super::gathered::MergedCell;

/// Colours of peers, in the order of measuring. The style sheet defines the same number.
const PEERS: [&str; 5] = ["peer-1", "peer-2", "peer-3", "peer-4", "peer-5"];

/// Returns the colour of a peer, by its zero-based index.
pub(crate) fn peer_colour(number: usize) -> &'static str {
    PEERS[number % PEERS.len()]
}

/// Returns the colour of line `index` out of `count`, from a continuous range of hues.
pub(crate) fn hue(index: usize, count: usize) -> String {
    let hue = 205 + 150 * index / count.saturating_sub(1).max(1);
    format!("light-dark(hsl({hue} 75% 38%), hsl({hue} 75% 70%))")
}

type FigureOf = Box<dyn Fn(&MergedCell<'_>) -> Option<f64>>;

/// A figure of a cell: its value, its interval, and the values of its windows.
pub(crate) struct Figure {
    pub(crate) of: FigureOf,
    pub(crate) ends: fn(&MergedCell<'_>) -> Option<Interval>,
    pub(crate) windows: fn(&MergedCell<'_>) -> Vec<f64>,
    pub(crate) when: When,
}

/// Settings shared by all charts.
pub(crate) struct Multiples {
    /// Prefix of the charts' ids, and name of their common scale.
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) styles: Vec<LineStyle>,
    pub(crate) x: XAxis,
    /// Figures that the reader can switch between.
    pub(crate) figures: Vec<Figure>,
    /// Text shown after a style's name.
    pub(crate) note: Option<fn(&MergedCell<'_>) -> String>,
}

/// A line of a chart: the index of its style, and a cell or `None` for each position.
pub(crate) type ChartLine<'c> = (usize, Vec<Option<&'c MergedCell<'c>>>);

impl Multiples {
    pub(crate) fn chart(&self, index: usize, title: &str, lines: &[ChartLine<'_>]) -> Chart {
        let series = |(style, cells): &ChartLine<'_>, figure: &Figure| {
            let note = |note: fn(&MergedCell<'_>) -> String| {
                cells.iter().map(|cell| cell.map(note).unwrap_or_default()).collect()
            };
            Series {
                shown: vec![(*style, figure.when.clone())],
                notes: self.note.map(note).unwrap_or_default(),
                ..figure.series(cells)
            }
        };
        let all = lines.iter().flat_map(|line| self.figures.iter().map(move |figure| series(line, figure)));
        Chart {
            id: format!("{}-{index}", self.name),
            title: title.to_owned(),
            x: self.x.clone(),
            y: YAxis { unit: self.unit, log: true, group: Some(self.name), ..YAxis::default() },
            styles: self.styles.clone(),
            series: all.filter(|series| !series.is_empty()).collect(),
            ..Chart::default()
        }
    }
}

impl Figure {
    /// Creates a figure without an interval.
    pub(crate) fn of(of: impl Fn(&MergedCell<'_>) -> Option<f64> + 'static) -> Self {
        Self { of: Box::new(of), ends: |_| None, windows: |_| Vec::new(), when: When::new() }
    }

    /// Operations per second.
    pub(crate) fn rate() -> Self {
        Self {
            ends: |cell| cell.rate_interval(),
            windows: |cell| cell.figure_of_each_window(|it| it.rate_per_s),
            ..Self::of(|cell| Some(cell.merged()?.rate_per_s))
        }
    }

    /// Returns a figure for each named latency, selected by the reader's choice.
    pub(crate) fn latencies(statistics: &[(&'static str, &str)]) -> Vec<Self> {
        let figure = |&(name, _): &(&'static str, &str)| Self {
            ends: if name == "p50" { |cell| cell.p50_interval() } else { |_| None },
            when: when("statistic", [name]),
            ..Self::of(move |cell| cell.latency_named(name))
        };
        statistics.iter().map(figure).collect()
    }

    /// Returns values, intervals and windows of these cells, without a style.
    pub(crate) fn series(&self, cells: &[Option<&MergedCell<'_>>]) -> Series {
        let windows: Vec<Vec<f64>> =
            cells.iter().map(|cell| cell.map(self.windows).unwrap_or_default()).collect();
        let series = Series {
            y: rounded(cells.iter().map(|cell| (self.of)((*cell)?))),
            windows: if windows.iter().all(Vec::is_empty) { Vec::new() } else { windows },
            ..Series::default()
        };
        series.intervals(cells.iter().map(|cell| (self.ends)((*cell)?)))
    }
}

/// Selectable latencies: the name for [`Latency::named`](thalweg_measure::distribution::Latency::named), and its
/// label.
pub(crate) const STATISTICS: [(&str, &str); 6] =
    [("p50", "median"), ("p90", "p90"), ("p95", "p95"), ("p99", "p99"), ("p99.9", "p99.9"), ("max", "max")];

/// Returns the choice between figures of [latencies](Figure::latencies).
pub(crate) fn statistic(statistics: &[(&'static str, &str)]) -> Choice {
    Choice::buttons("statistic", "Latency shown", statistics.iter().copied())
}
