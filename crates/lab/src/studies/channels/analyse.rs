//! Analysis of a channels study: rate and latency over calls in flight, one line per connection strategy. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::load::gathered::{MergedCell, distinct, grouped};
use crate::load::noise::Noise;
use crate::load::{Kind, LabResults, PointResult, Strategy, Work};
use crate::record::CallType;
use crate::stack::{OURS, Pair, Stack};

/// Results by kind of call, delay and line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Channels<'r> {
    /// Panels in the order of measuring: kinds of call, with ascending delays.
    pub(crate) panels: Vec<Panel<'r>>,
    /// Noise floor, from ours against ours: largest log ratio of rates that counts as no difference.
    pub(crate) noise: f64,
}

/// One kind of call with one delay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panel<'r> {
    pub(crate) call: CallType,
    /// Round-trip time added by the network.
    pub(crate) round_trip: Duration,
    /// Lines in the order of measuring.
    pub(crate) lines: Vec<ChannelsLine<'r>>,
}

/// Line of one connection strategy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChannelsLine<'r> {
    pub(crate) pair: &'r Pair,
    pub(crate) strategy: Strategy,
    /// Cells by ascending calls in flight. Cells without a success are missing.
    pub(crate) cells: Vec<MergedCell<'r>>,
}

impl<'r> Channels<'r> {
    /// Returns every cell, by panel and line.
    pub(crate) fn points(&self) -> impl Iterator<Item = &MergedCell<'r>> {
        self.panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.cells)
    }

    /// Arranges the windows of a channels study.
    pub(crate) fn of(results: &'r LabResults) -> Self {
        let cells = results.gather_cells().into_iter().filter_map(|cell| {
            let (pair, strategy) = (cell.pair?, cell.strategy?);
            let Work::Call(call) = cell.point.work else { return None };
            Some(((call, cell.point.round_trip), (pair, strategy), cell))
        });
        let line = |((pair, strategy), cells): ((&'r Pair, Strategy), Vec<(_, _, MergedCell<'r>)>)| {
            let cells = cells.into_iter().map(|(.., cell)| cell);
            let mut cells: Vec<MergedCell<'r>> = cells.filter(|cell| cell.latency().is_some()).collect();
            cells.sort_by_key(|cell| cell.point.in_flight);
            ChannelsLine { pair, strategy, cells }
        };
        let panels = grouped(cells, |(panel, ..)| *panel).into_iter().map(|((call, round_trip), cells)| {
            let lines = grouped(cells, |(_, strategy, _)| *strategy).into_iter().map(line).collect();
            Panel { call, round_trip, lines }
        });
        Self { panels: panels.collect(), noise: Noise::of(&results.aa).rate(Kind::LONE_CALL) }
    }

    /// Returns all numbers of calls in flight of this kind of call, ascending.
    pub(crate) fn in_flight(&self, call: CallType) -> Vec<u32> {
        let cells = self.points().filter(|cell| cell.point.work == Work::Call(call));
        let in_flight: BTreeSet<u32> = cells.map(|cell| cell.point.in_flight).collect();
        in_flight.into_iter().collect()
    }

    /// Returns the cell of a window.
    pub(crate) fn cell(&self, window: &PointResult) -> Option<&MergedCell<'r>> {
        let is_here = |cell: &MergedCell<'_>| cell.all.iter().any(|it| std::ptr::eq(*it, window));
        self.points().find(|cell| is_here(cell))
    }

    /// Returns the kinds of call in the order of measuring.
    pub(crate) fn calls(&self) -> Vec<CallType> {
        distinct(self.panels.iter().map(|panel| panel.call))
    }

    /// Returns the distinct pairs and strategies of all panels.
    pub(crate) fn strategies(&self) -> Vec<(&'r Pair, Strategy)> {
        distinct(self.panels.iter().flat_map(|panel| &panel.lines).map(|line| (line.pair, line.strategy)))
    }
}

impl Panel<'_> {
    /// Returns operations per second for ideal scaling of the fastest lone call in this panel. `None` if no lone call
    /// was measured.
    pub(crate) fn ideal(&self, in_flight: u32) -> Option<f64> {
        let lone = self.lines.iter().filter_map(|line| line.at(1)).filter_map(MergedCell::rate);
        lone.reduce(f64::max).map(|rate| rate * f64::from(in_flight))
    }

    /// Returns the panel's added delay: `5 ms added round trip`.
    pub(crate) fn network(&self) -> String {
        network(self.round_trip)
    }
}

/// Returns a network's added delay: `no added delay`, `5 ms added round trip`.
pub(crate) fn network(round_trip: Duration) -> String {
    if round_trip.is_zero() {
        "no added delay".to_owned()
    } else {
        format!("{} added round trip", thalweg_measure::figures::time(round_trip.as_nanos() as f64))
    }
}

impl MergedCell<'_> {
    /// Returns the line's name in tables and legends.
    pub(crate) fn line_label(&self) -> String {
        self.pair.zip(self.strategy).map(|(pair, strategy)| label(pair, strategy)).unwrap_or_default()
    }
}

impl<'r> ChannelsLine<'r> {
    /// Returns the cell at this number of calls in flight.
    pub(crate) fn at(&self, in_flight: u32) -> Option<&MergedCell<'r>> {
        self.cells.iter().find(|cell| cell.point.in_flight == in_flight)
    }

    /// Returns the line's name in tables and legends: `thalweg, adaptive`.
    pub(crate) fn label(&self) -> String {
        label(self.pair, self.strategy)
    }
}

/// Returns a line's name in tables and legends: `thalweg, adaptive`, `grpc-cpp:own, 4 channels`.
pub(crate) fn label(pair: &Pair, strategy: Strategy) -> String {
    match strategy {
        Strategy::Fixed(channels @ 2..) if pair.client.name() != OURS => {
            format!("{pair_name}, {channels} channels", pair_name = shown(pair))
        }
        Strategy::Fixed(1) if pair.client.name() != OURS => format!("{}, one channel", shown(pair)),
        _ => format!("{}, {strategy}", shown(pair)),
    }
}

/// Returns the client's name, with the server's if that is another stack's.
fn shown(pair: &Pair) -> String {
    let is_client_sufficient = pair.client.name() == pair.server.name() || pair.server == Stack::target();
    if is_client_sufficient { pair.client.to_string() } else { pair.to_string() }
}
