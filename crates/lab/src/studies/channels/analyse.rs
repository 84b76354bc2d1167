//! What a channels study found: rate and latency over calls in flight, a line for each way to come by connections.
//! Pure.

use std::time::Duration;

use thalweg_measure::distribution::Latency;
use thalweg_measure::statistics::{Interval, median};

use crate::load::Kind;
use crate::load::gathered::{Windows, gathered};
use crate::load::noise::Noise;
use crate::load::paired::{PairedWindow, interval};
use crate::load::used::Used;
use crate::load::{Asked, LabResults, Point, PointResult, Strategy, SystemCalls, Wire, Work};
use crate::record::{CallType, LanesAt};
use crate::stack::{OURS, Pair, Stack};

/// Everything that was found, by kind of call, delay, and line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Channels {
    /// In the order of measuring: kinds of call, and of each the delays ascending.
    pub(crate) panels: Vec<Panel>,
    /// A log ratio of rates that is no farther from 0 is no difference: ours against ours.
    pub(crate) noise: f64,
}

/// One kind of call over one delay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panel {
    /// Which kind.
    pub(crate) call: CallType,
    /// What the network adds to a round trip.
    pub(crate) round_trip: Duration,
    /// In the order of measuring.
    pub(crate) lines: Vec<Line>,
}

/// One way to come by connections.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    /// Whose client and server.
    pub(crate) pair: Pair,
    /// Which way.
    pub(crate) strategy: Strategy,
    /// By calls in flight, ascending. Those at which nothing succeeded are missing.
    pub(crate) cells: Vec<Cell>,
}

/// One point of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    /// Calls in flight.
    pub(crate) in_flight: u32,
    /// What it was measured by, in the order of rounds.
    pub(crate) windows: Vec<PairedWindow>,
    /// Operations per second: the geometric mean of the windows.
    pub(crate) rate_per_s: f64,
    /// Where the rate lies with a confidence of 95 %; `None` with too few windows.
    pub(crate) rate_interval: Option<Interval>,
    /// Where the median latency lies, likewise.
    pub(crate) p50_interval: Option<Interval>,
    /// Of one operation.
    pub(crate) latency: Latency,
    /// In the kernel's tables; the median of the windows.
    pub(crate) connections: Option<u32>,
    /// The client's process.
    pub(crate) client: Option<Used>,
    /// The server's process.
    pub(crate) server: Option<Used>,
    /// Per operation, counted apart.
    pub(crate) system_calls: Option<SystemCalls>,
    /// Watched apart.
    pub(crate) wire: Option<Wire>,
    /// Lanes of an adaptive channel in the last window.
    pub(crate) lanes: Vec<LanesAt>,
    /// How long that window was measured.
    pub(crate) window_ns: u64,
    /// Calls that failed.
    pub(crate) errors: u64,
}

impl Channels {
    /// Every point with where it lies, in the order of measuring.
    pub(crate) fn points(&self) -> impl Iterator<Item = (&Panel, &Line, &Cell)> {
        self.panels.iter().flat_map(|panel| {
            panel.lines.iter().flat_map(move |line| line.cells.iter().map(move |cell| (panel, line, cell)))
        })
    }

    /// Arranges the windows of a channels study.
    pub(crate) fn of(results: &LabResults) -> Self {
        let mut panels: Vec<Panel> = Vec::new();
        for windows in gathered(&results.points) {
            let (Some(pair), Some(strategy)) = (windows.pair, windows.all[0].strategy) else { continue };
            let Work::Call(call) = windows.point.work else { continue };
            let round_trip = windows.point.round_trip;
            let at = panels.iter().position(|it| (it.call, it.round_trip) == (call, round_trip));
            let at = at.unwrap_or_else(|| {
                panels.push(Panel { call, round_trip, lines: Vec::new() });
                panels.len() - 1
            });
            let lines = &mut panels[at].lines;
            let line = lines.iter().position(|line| (&line.pair, line.strategy) == (pair, strategy));
            let line = line.unwrap_or_else(|| {
                lines.push(Line { pair: pair.clone(), strategy, cells: Vec::new() });
                lines.len() - 1
            });
            lines[line].cells.extend(cell(&windows, results));
        }
        for line in panels.iter_mut().flat_map(|panel| &mut panel.lines) {
            line.cells.sort_by_key(|cell| cell.in_flight);
        }
        Self { panels, noise: Noise::of(&results.aa).rate(Kind::LONE_CALL) }
    }

    /// Every number in flight that some line of this kind of call has, ascending.
    pub(crate) fn in_flight(&self, call: CallType) -> Vec<u32> {
        let panels = self.panels.iter().filter(|panel| panel.call == call);
        let cells = panels.flat_map(|panel| &panel.lines).flat_map(|line| &line.cells);
        let mut in_flight: Vec<u32> = cells.map(|cell| cell.in_flight).collect();
        in_flight.sort_unstable();
        in_flight.dedup();
        in_flight
    }

    /// Where a window's figures are.
    pub(crate) fn cell(&self, window: &PointResult) -> Option<&Cell> {
        let (pair, strategy) = (window.pair.as_ref()?, window.strategy?);
        let panels = self.panels.iter().filter(|panel| {
            (Work::Call(panel.call), panel.round_trip) == (window.point.work, window.point.round_trip)
        });
        let mut lines = panels.flat_map(|panel| &panel.lines);
        lines.find(|line| (&line.pair, line.strategy) == (pair, strategy))?.at(window.point.in_flight)
    }

    /// The kinds of call, in the order of measuring.
    pub(crate) fn calls(&self) -> Vec<CallType> {
        let mut calls: Vec<CallType> = self.panels.iter().map(|panel| panel.call).collect();
        calls.dedup();
        calls
    }

    /// The pairs and ways of all panels, each once.
    pub(crate) fn ways(&self) -> Vec<(&Pair, Strategy)> {
        let mut ways = Vec::new();
        for line in self.panels.iter().flat_map(|panel| &panel.lines) {
            let way = (&line.pair, line.strategy);
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        ways
    }
}

impl Panel {
    /// Operations per second if each call in flight were as fast as the lone call of the fastest line here. `None`
    /// where none was measured alone.
    pub(crate) fn ideal(&self, in_flight: u32) -> Option<f64> {
        let lone = self.lines.iter().filter_map(|line| line.at(1)).map(|cell| cell.rate_per_s);
        lone.reduce(f64::max).map(|rate| rate * f64::from(in_flight))
    }

    /// What its network adds: `5 ms added round trip`.
    pub(crate) fn network(&self) -> String {
        network(self.round_trip)
    }
}

/// What a network adds to a round trip: `no added delay`, `5 ms added round trip`.
pub(crate) fn network(round_trip: Duration) -> String {
    if round_trip.is_zero() {
        "no added delay".to_owned()
    } else {
        format!("{} added round trip", thalweg_measure::figures::time(round_trip.as_nanos() as f64))
    }
}

impl Line {
    /// At so many calls in flight.
    pub(crate) fn at(&self, in_flight: u32) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.in_flight == in_flight)
    }

    /// The way's name in tables and legends: `thalweg, adaptive`.
    pub(crate) fn label(&self) -> String {
        label(&self.pair, self.strategy)
    }
}

/// The way's name in tables and legends: `thalweg, adaptive`, `grpc-cpp:own, 4 channels`.
pub(crate) fn label(pair: &Pair, strategy: Strategy) -> String {
    match strategy {
        Strategy::Fixed(channels @ 2..) if pair.client.name() != OURS => {
            format!("{pair_name}, {channels} channels", pair_name = shown(pair))
        }
        Strategy::Fixed(1) if pair.client.name() != OURS => format!("{}, one channel", shown(pair)),
        _ => format!("{}, {strategy}", shown(pair)),
    }
}

/// The client's name, and the server's where that is another stack's.
fn shown(pair: &Pair) -> String {
    let is_told = pair.client.name() == pair.server.name() || pair.server == Stack::target();
    if is_told { pair.client.to_string() } else { pair.to_string() }
}

fn cell(windows: &Windows<'_>, results: &LabResults) -> Option<Cell> {
    let merged = windows.merged()?;
    let latency = merged.latency_ns?;
    let (pair, strategy) = (windows.pair?, windows.all[0].strategy?);
    let place = |point: &Point| (point.work, point.in_flight, point.round_trip);
    let is_here = |asked: &Asked| {
        (asked.pair.as_ref(), asked.strategy) == (Some(pair), Some(strategy))
            && place(&asked.point) == place(windows.point)
    };
    let counted = results.system_calls.iter().find(|it| is_here(&it.asked));
    let watched = results.wire.iter().find(|it| is_here(&it.asked));
    let established = windows.valid().filter_map(|(_, load)| load.connections.established).map(f64::from);
    let last = windows.valid().last();
    let rounds: Vec<PairedWindow> = windows.all.iter().map(|&window| PairedWindow::of(window)).collect();
    Some(Cell {
        in_flight: windows.point.in_flight,
        rate_interval: interval(&rounds, |window| window.rate_per_s),
        p50_interval: interval(&rounds, |window| window.p50_ns),
        windows: rounds,
        rate_per_s: merged.rate_per_s,
        latency,
        connections: median(established).map(|connections| connections.round() as u32),
        client: windows.used(|usage| &usage.client).or_else(|| own_account(windows)),
        server: windows.used(|usage| &usage.server),
        system_calls: counted.and_then(|it| it.measured().copied()),
        wire: watched.and_then(|it| it.measured().cloned()),
        lanes: last.map(|(_, load)| load.lanes.clone()).unwrap_or_default(),
        window_ns: last.map_or(0, |(_, load)| load.duration_ns),
        errors: merged.error_count(),
    })
}

/// What the client says of itself, where nobody looked at it from outside.
fn own_account(windows: &Windows<'_>) -> Option<Used> {
    let (mut used, mut window_ns, mut operations) = (Used::default(), 0.0, 0.0);
    for (_, load) in windows.valid() {
        used.user_ns += load.client_cpu.user_ns;
        used.system_ns += load.client_cpu.system_ns;
        window_ns += load.duration_ns as f64;
        operations += load.messages as f64;
    }
    let (user_ns, system_ns) = (used.user_ns / operations, used.system_ns / operations);
    (window_ns > 0.0 && operations > 0.0).then(|| Used {
        user_ns,
        system_ns,
        processors: used.ns() / window_ns,
        ..used
    })
}
