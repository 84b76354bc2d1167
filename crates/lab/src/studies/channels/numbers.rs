//! Best number of connections at each load, and its gain over one. Pure.
//!
//! Every strategy with several connections is compared with one connection over windows of the same round. Intervals of
//! a load are corrected for [multiple comparisons](thalweg_measure::statistics::Ratio::corrected_for), so they also
//! hold for the strategy with the largest rate.

use std::time::Duration;

use super::analyse::{Channels, ChannelsLine, Panel};
use crate::load::gathered::{MergedCell, distinct};
use crate::load::verdict::{Better, JudgedRatio, MARGIN, Verdict};
use crate::load::{Strategy, Work};
use crate::record::CallType;
use crate::stack::Pair;

/// Client and server, without variants.
pub(crate) type Names = (String, String);

/// Best numbers of one stack for one kind of call and delay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BestNumbers {
    pub(crate) stack: Names,
    pub(crate) call: CallType,
    /// Round-trip time added by the network.
    pub(crate) round_trip: Duration,
    /// Loads measured over one connection, by ascending calls in flight.
    pub(crate) rows: Vec<LoadRow>,
}

/// Best number at one load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoadRow {
    pub(crate) in_flight: u32,
    /// Strategies with a fixed number of several connections, fewest first.
    pub(crate) several: Vec<MultiConnection>,
    /// Best number of connections.
    pub(crate) best: Best,
    /// Comparison of the adaptive channel with that number.
    pub(crate) adaptive: Option<Adaptive>,
}

/// A strategy with several connections, compared with one connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MultiConnection {
    /// Client with its variant, and server.
    pub(crate) pair: Pair,
    pub(crate) strategy: Strategy,
    /// Name of the line.
    pub(crate) name: String,
    pub(crate) connections: u32,
    pub(crate) rate_per_s: f64,
    /// Its rate ÷ the rate over one connection.
    pub(crate) over_one: JudgedRatio,
}

/// The fewest connections not shown to be worse than the best.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Best {
    /// One connection, with nothing to compare it with: a lone call cannot use more.
    Only,
    /// One connection: every strategy with several is shown to gain no more than [`MARGIN`].
    One,
    /// Several connections, with a shown gain.
    Several(MultiConnection),
    /// No strategy is shown to gain, and at least one may gain more than [`MARGIN`].
    CannotTell,
}

/// Comparison of an adaptive channel with a fixed number of connections.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Adaptive {
    /// The fixed number: the best one, or the one with the largest rate if undecided.
    pub(crate) of: u32,
    /// Its rate ÷ the rate over the fixed number.
    pub(crate) share: JudgedRatio,
}

impl BestNumbers {
    /// Returns how this cell compares with one connection.
    pub(crate) fn several(&self, cell: &MergedCell<'_>) -> Option<&MultiConnection> {
        let point = cell.point;
        let is_here = (Work::Call(self.call), self.round_trip) == (point.work, point.round_trip);
        let row = self.rows.iter().find(|row| is_here && row.in_flight == point.in_flight)?;
        row.several
            .iter()
            .find(|candidate| (Some(&candidate.pair), Some(candidate.strategy)) == (cell.pair, cell.strategy))
    }
}

impl LoadRow {
    /// Returns the best strategy with several connections if its gain is shown.
    pub(crate) fn gain(&self) -> Option<&MultiConnection> {
        match &self.best {
            Best::Several(gain) => Some(gain),
            _ => None,
        }
    }

    /// Returns the most informative strategy at this load: the best one, or the one with the largest rate.
    pub(crate) fn most_informative(&self) -> Option<&MultiConnection> {
        self.gain().or_else(|| fastest(self.several.iter()))
    }
}

impl MultiConnection {
    /// Returns the lower end of the ratio's interval; 0 without one.
    pub(crate) fn lower_bound(&self) -> f64 {
        self.over_one.ratio.and_then(|ratio| ratio.interval).map_or(0.0, |interval| interval.low)
    }

    /// Returns whether the whole interval lies below [`MARGIN`], so more connections gain too little.
    fn gains_nothing(&self) -> bool {
        let interval = self.over_one.ratio.and_then(|ratio| ratio.interval);
        self.over_one.verdict != Verdict::Faster && interval.is_some_and(|interval| interval.high <= MARGIN)
    }
}

/// Number of loads by result, without loads that have nothing to compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadsTally {
    /// Loads at which several connections gain.
    pub(crate) gains: usize,
    /// Loads at which they gain no more than [`MARGIN`].
    pub(crate) nothing: usize,
    /// Undecided loads.
    pub(crate) cannot_tell: usize,
}

impl LoadsTally {
    /// Returns the number of loads at which several connections were compared with one.
    pub(crate) fn loads(self) -> usize {
        self.gains + self.nothing + self.cannot_tell
    }
}

impl<'r> FromIterator<&'r LoadRow> for LoadsTally {
    fn from_iter<I: IntoIterator<Item = &'r LoadRow>>(rows: I) -> Self {
        let mut tally = Self::default();
        for row in rows {
            match row.best {
                Best::Only => {}
                Best::One => tally.nothing += 1,
                Best::Several(_) => tally.gains += 1,
                Best::CannotTell => tally.cannot_tell += 1,
            }
        }
        tally
    }
}

/// Returns the row with the largest gain at the lower end of its interval. The largest of many ratios could be large
/// by chance.
pub(crate) fn largest_gain<'n>(
    rows: impl Iterator<Item = &'n LoadRow>,
) -> Option<(&'n LoadRow, &'n MultiConnection)> {
    rows.filter_map(|row| Some((row, row.gain()?)))
        .max_by(|(_, a), (_, b)| a.lower_bound().total_cmp(&b.lower_bound()))
}

/// Returns the numbers of each stack, kind of call and delay measured over one connection, grouped by stack.
pub(crate) fn numbers(channels: &Channels<'_>) -> Vec<BestNumbers> {
    let mut numbers = Vec::new();
    for stack in stacks(channels) {
        for panel in &channels.panels {
            let lines = lines_of(panel, &stack);
            let Some(one) = lines.iter().find(|line| line.strategy == Strategy::Fixed(1)) else { continue };
            let rows = one.cells.iter().map(|cell| row(cell, &lines, channels.noise)).collect();
            let Panel { call, round_trip, .. } = *panel;
            numbers.push(BestNumbers { stack: stack.clone(), call, round_trip, rows });
        }
    }
    numbers
}

/// Returns the lines of this stack, with all variants of client and server.
pub(crate) fn lines_of<'p, 'r>(panel: &'p Panel<'r>, stack: &Names) -> Vec<&'p ChannelsLine<'r>> {
    panel.lines.iter().filter(|line| names(line.pair) == *stack).collect()
}

/// Returns clients and servers without variants, in the order of measuring.
fn stacks(channels: &Channels<'_>) -> Vec<Names> {
    distinct(channels.strategies().into_iter().map(|(pair, _)| names(pair)))
}

fn names(pair: &Pair) -> Names {
    (pair.client.name().to_owned(), pair.server.name().to_owned())
}

fn row(one: &MergedCell<'_>, lines: &[&ChannelsLine<'_>], floor: f64) -> LoadRow {
    let in_flight = one.point.in_flight;
    let mut fixed: Vec<(&MergedCell<'_>, u32)> =
        lines.iter().filter_map(|line| with_connection_count(line.at(in_flight)?)).collect();
    fixed.sort_by_key(|(_, connections)| *connections);
    let ratio = |a: &MergedCell<'_>, b: &MergedCell<'_>, candidates: usize| {
        let ratio = a.ratio_to(b, |window| window.rate_per_s);
        JudgedRatio::new(ratio.map(|ratio| ratio.corrected_for(candidates)), floor, Better::More)
    };
    let several = fixed.iter().filter_map(|&(cell, connections)| {
        Some(MultiConnection {
            pair: cell.pair?.clone(),
            strategy: cell.strategy?,
            name: cell.line_label(),
            connections,
            rate_per_s: cell.rate_per_s(),
            over_one: ratio(cell, one, fixed.len()),
        })
    });
    let several: Vec<MultiConnection> = several.collect();
    let cell = |candidate: &MultiConnection| {
        let is_it = |cell: &MergedCell<'_>| {
            (cell.pair, cell.strategy) == (Some(&candidate.pair), Some(candidate.strategy))
        };
        fixed.iter().map(|(cell, _)| *cell).find(|cell| is_it(cell))
    };
    let best = best(&several, |a, b| Some(ratio(cell(a)?, cell(b)?, several.len())));
    let of = match &best {
        Best::Several(candidate) => Some(candidate),
        Best::CannotTell => {
            fastest(several.iter()).filter(|candidate| candidate.rate_per_s > one.rate_per_s())
        }
        Best::One | Best::Only => None,
    };
    let of_cell = of.and_then(cell).unwrap_or(one);
    let adaptive = lines.iter().find(|line| line.strategy == Strategy::Adaptive);
    let adaptive = adaptive.and_then(|line| line.at(in_flight)).map(|cell| Adaptive {
        of: of.map_or(1, |candidate| candidate.connections),
        share: ratio(cell, of_cell, several.len() + 1),
    });
    LoadRow { in_flight, several, best, adaptive }
}

/// Returns the cell and its number of connections if that is fixed and more than one. Channels that share a connection
/// do not count as several.
fn with_connection_count<'c, 'r>(cell: &'c MergedCell<'r>) -> Option<(&'c MergedCell<'r>, u32)> {
    let strategy = cell.strategy.filter(|it| matches!(it, Strategy::Fixed(_) | Strategy::PerWorker))?;
    let connections = cell.connections().unwrap_or_else(|| strategy.connections(cell.point.in_flight));
    (connections > 1).then_some((cell, connections))
}

/// Returns the best number of connections. `compared` returns the rate of one strategy ÷ that of another.
fn best(
    several: &[MultiConnection],
    compared: impl Fn(&MultiConnection, &MultiConnection) -> Option<JudgedRatio>,
) -> Best {
    if several.is_empty() {
        return Best::Only;
    }
    let gaining: Vec<&MultiConnection> =
        several.iter().filter(|candidate| candidate.over_one.verdict == Verdict::Faster).collect();
    if let Some(most) = fastest(gaining.iter().copied()) {
        let is_worse = |candidate: &MultiConnection| {
            compared(candidate, most).is_some_and(|it| it.verdict == Verdict::Slower)
        };
        let fewest = gaining.iter().find(|candidate| !is_worse(candidate)).copied();
        return Best::Several(fewest.unwrap_or(most).clone());
    }
    if several.iter().all(MultiConnection::gains_nothing) { Best::One } else { Best::CannotTell }
}

fn fastest<'s>(candidates: impl Iterator<Item = &'s MultiConnection>) -> Option<&'s MultiConnection> {
    candidates.max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))
}
