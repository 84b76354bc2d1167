//! Figures of a study of calls, cell by cell.

use thalweg_measure::distribution::Latency;
use thalweg_measure::statistics::Ratio;

use crate::load::gathered::{Windows, gathered};
use crate::load::paired::{self, Window};
use crate::load::results::{SystemCallsOutcome, WireOutcome};
use crate::load::{LabResults, Strategy, SystemCalls, Transport, Wire, Work};
use crate::record::CallType;
use crate::stack::Pair;

/// All cells of a study.
pub(crate) struct Calls<'r> {
    results: &'r LabResults,
    cells: Vec<Windows<'r>>,
}

/// Which cell; in a study of sizes without a way to come by connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct At<'a> {
    /// Names of stacks, with their variants.
    pub(crate) client: &'a str,
    pub(crate) server: &'a str,
    pub(crate) call: CallType,
    pub(crate) size: u64,
    pub(crate) transport: Transport,
    pub(crate) in_flight: u32,
    /// What the network adds, ns.
    pub(crate) round_trip_ns: u64,
    pub(crate) strategy: Option<Strategy>,
}

/// What was measured there.
pub(crate) struct Cell {
    pub(crate) at: String,
    pub(crate) rate_per_s: f64,
    /// How many operations its figures are of.
    pub(crate) operations: u64,
    /// None of streams one way.
    pub(crate) latency: Option<Latency>,
    /// The most that the kernel saw.
    pub(crate) connections: Option<u32>,
    /// Processor time of an operation, client's and server's, ns; 0 where it is not known.
    pub(crate) processor_ns: (f64, f64),
    windows: Vec<Window>,
}

impl<'a> At<'a> {
    /// A lone unary call over a Unix socket.
    pub(crate) fn lone(client: &'a str, server: &'a str, size: u64) -> Self {
        Self::stream(client, server, CallType::Unary, size)
    }

    /// One stream over a Unix socket.
    pub(crate) fn stream(client: &'a str, server: &'a str, call: CallType, size: u64) -> Self {
        Self {
            client,
            server,
            call,
            size,
            transport: Transport::Uds,
            in_flight: 1,
            round_trip_ns: 0,
            strategy: None,
        }
    }
}

impl<'r> Calls<'r> {
    pub(crate) fn of(results: &'r LabResults) -> Self {
        Self { results, cells: gathered(&results.points) }
    }

    pub(crate) fn results(&self) -> &'r LabResults {
        self.results
    }

    /// The cell, or why it is not there.
    pub(crate) fn at(&self, at: At<'_>) -> Result<Cell, String> {
        let name = || {
            let by = at.strategy.map(|by| format!(" over {by}")).unwrap_or_default();
            format!("{} of {} B by {} at {}{by}", at.call, at.size, at.client, at.server)
        };
        let windows = self.cells.iter().find(|cell| is_at(cell, at));
        let windows =
            windows.ok_or_else(|| format!("not measured: {}", self.why(at).unwrap_or_else(name)))?;
        let why_not = || format!("{}: no window is valid: {}", name(), windows.why_not());
        let merged = windows.merged().ok_or_else(why_not)?;
        let seen = windows.valid().filter_map(|(_, load)| load.connections.established).max();
        let all: Vec<Window> = windows.all.iter().map(|window| Window::of(window)).collect();
        let mean = |side: fn(&paired::Measured) -> f64| {
            let measured: Vec<f64> = all
                .iter()
                .filter_map(|window| window.outcome.as_ref().ok())
                .map(side)
                .filter(|ns| *ns > 0.0)
                .collect();
            measured.iter().sum::<f64>() / measured.len().max(1) as f64
        };
        Ok(Cell {
            at: name(),
            rate_per_s: merged.rate_per_s,
            operations: merged.messages,
            latency: merged.latency_ns,
            connections: seen,
            processor_ns: (mean(|it| it.client_ns), mean(|it| it.server_ns)),
            windows: all,
        })
    }

    /// Why a stack takes no part, if it does not.
    fn why(&self, at: At<'_>) -> Option<String> {
        let of = |name: &str| {
            self.results.left_out.iter().find(|it| it.what.name() == name.split(':').next().unwrap_or(name))
        };
        let left_out = of(at.client).or_else(|| of(at.server))?;
        Some(format!("{} was left out: {}", left_out.what, left_out.reason))
    }

    /// Sizes that were measured, ascending.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.cells.iter().map(|cell| cell.point.size_bytes.0).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Unary calls in flight that were measured, ascending.
    pub(crate) fn in_flight(&self) -> Vec<u32> {
        let unary = self.cells.iter().filter(|cell| cell.point.work == Work::Call(CallType::Unary));
        let mut numbers: Vec<u32> = unary.map(|cell| cell.point.in_flight).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// What networks added to a round trip, ns, ascending.
    pub(crate) fn round_trips_ns(&self) -> Vec<u64> {
        let ns = |cell: &Windows<'_>| u64::try_from(cell.point.round_trip.as_nanos()).unwrap_or(u64::MAX);
        let mut all: Vec<u64> = self.cells.iter().map(ns).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Ways in which this client came by its connections.
    pub(crate) fn ways(&self, name: &str) -> Vec<(String, Strategy)> {
        let mut ways: Vec<(String, Strategy)> = Vec::new();
        for cell in &self.cells {
            let Some(pair) = cell.pair.filter(|pair| pair.client.name() == name) else { continue };
            let Some(strategy) = cell.all.first().and_then(|window| window.strategy) else { continue };
            let way = (pair.client.to_string(), strategy);
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        ways
    }

    /// System calls of an operation, counted in a run of its own; the smallest size.
    pub(crate) fn system_calls(
        &self,
        client: &str,
        server: &str,
        call: CallType,
        in_flight: u32,
    ) -> Option<SystemCalls> {
        let counted = self.results.system_calls.iter().find(|it| {
            is_pair(&it.pair, client, server)
                && it.point.work == Work::Call(call)
                && it.point.in_flight == in_flight
        })?;
        match counted.outcome {
            SystemCallsOutcome::Counted(counted) => Some(counted),
            SystemCallsOutcome::Failed(_) => None,
        }
    }

    /// What was seen on the wire between this client and its server, with so many calls in flight.
    pub(crate) fn wire(&self, client: &str, strategy: Strategy, in_flight: u32) -> Option<&'r Wire> {
        let of = |it: &&crate::load::results::WireResult| {
            it.pair.client.to_string() == client
                && it.strategy == Some(strategy)
                && it.point.in_flight == in_flight
                && it.point.work == Work::Call(CallType::Unary)
        };
        match &self.results.wire.iter().find(of)?.outcome {
            WireOutcome::Watched(wire) => Some(wire),
            WireOutcome::Failed(_) => None,
        }
    }
}

impl Cell {
    /// How many times the rate of another cell this one has, by windows of the same round.
    pub(crate) fn rate_over(&self, other: &Self) -> Option<Ratio> {
        paired::ratio(&self.windows, &other.windows, |window| window.rate_per_s)
    }

    /// The median of a call, ns.
    pub(crate) fn p50(&self) -> Result<f64, String> {
        self.latency.map(|latency| latency.p50 as f64).ok_or_else(|| format!("{}: no latency", self.at))
    }
}

fn is_at(cell: &Windows<'_>, at: At<'_>) -> bool {
    let point = cell.point;
    let strategy = cell.all.first().and_then(|window| window.strategy);
    cell.pair.is_some_and(|pair| is_pair(pair, at.client, at.server))
        && point.work == Work::Call(at.call)
        && point.size_bytes.0 == at.size
        && point.transport == at.transport
        && point.in_flight == at.in_flight
        && point.round_trip.as_nanos() == u128::from(at.round_trip_ns)
        && strategy == at.strategy
}

fn is_pair(pair: &Pair, client: &str, server: &str) -> bool {
    pair.client.to_string() == client && pair.server.to_string() == server
}
