//! Measures of a study of calls, by cell.

use super::cell::CallsCell;
use super::scope::Scope;
use super::value::{Value, ValueResult};
use crate::load::gathered::{MergedCell, distinct, gather_cells};
use crate::load::paired::{self, PairedWindow};
use crate::load::{IdleGaps, LabResults, Point, Strategy, Transport, Work};
use crate::record::CallType;
use crate::stack::Pair;

/// All cells of a study.
pub(crate) struct Calls<'r> {
    results: &'r LabResults,
    cells: Vec<MergedCell<'r>>,
}

/// Conditions that select a cell: client and server with variants, and the scope's conditions.
#[derive(Clone)]
struct CellConditions {
    client: String,
    server: String,
    call: CallType,
    size: u64,
    transport: Transport,
    in_flight: u32,
    /// Round-trip time added by the network, ns.
    round_trip_ns: u64,
    /// Connection strategy; `None` in a study of sizes.
    strategy: Option<Strategy>,
}

/// Variant of a client that shares one connection between channels with equal arguments.
const SHARED: &str = ":shared";

impl<'r> Calls<'r> {
    pub(crate) fn of(results: &'r LabResults) -> Self {
        Self { results, cells: gather_cells(&results.points) }
    }

    /// Returns the measure of this name, or `None` if a study of calls does not define it.
    pub(crate) fn measure(&self, name: &str, scope: &Scope<'_>) -> Option<ValueResult> {
        let points = || self.cells.iter().map(|cell| cell.point);
        Some(match name {
            "cell" => CellConditions::of(scope).and_then(|at| self.at(&at)).map(Value::from),
            "sizes" => Ok(Value::ascending(points().map(|point| point.size_bytes.0))),
            "loads" => {
                let unary = points().filter(|point| point.work == Work::Call(CallType::Unary));
                Ok(Value::ascending(unary.map(|point| point.in_flight.into())))
            }
            "round_trips" => Ok(Value::ascending(points().map(round_trip_ns))),
            "cores" => Ok(Value::Number(self.results.machine.cores as f64)),
            "ways" => scope
                .words("client")
                .map(|client| self.strategies(&client).into_iter().map(strategy_record).collect()),
            "gain" => CellConditions::of(scope).and_then(|at| self.gain(&at, scope.number("counts")?)),
            "system_calls" => CellConditions::of(scope).and_then(|at| self.system_calls(&at)),
            "wire" => CellConditions::of(scope).and_then(|at| self.wire(&at)),
            _ => return None,
        })
    }

    /// Returns the cell, or why it is missing.
    fn at(&self, at: &CellConditions) -> Result<CallsCell, String> {
        let name = || {
            let by = at.strategy.map(|by| format!(" over {by}")).unwrap_or_default();
            format!("{} of {} B by {} at {}{by}", at.call, at.size, at.client, at.server)
        };
        let windows = self.cells.iter().find(|cell| at.is_of(cell));
        let windows =
            windows.ok_or_else(|| format!("not measured: {}", self.why(at).unwrap_or_else(name)))?;
        let why_not = || format!("{}: no window is valid: {}", name(), windows.invalid_reasons());
        let merged = windows.merged().ok_or_else(why_not)?;
        let established = windows.valid().filter_map(|(_, load)| load.connections.established).max();
        let all: Vec<PairedWindow> = windows.all.iter().map(|window| PairedWindow::of(window)).collect();
        let mean = |side: fn(&paired::PairedFigures) -> f64| {
            let measured = all.iter().filter_map(|window| window.outcome.as_ref().ok()).map(side);
            let known: Vec<f64> = measured.filter(|ns| *ns > 0.0).collect();
            known.iter().sum::<f64>() / known.len().max(1) as f64
        };
        Ok(CallsCell {
            at: name(),
            rate_per_s: merged.rate_per_s,
            operations: merged.messages,
            latency: merged.latency_ns,
            connections: established,
            processor_ns: (mean(|it| it.client_ns), mean(|it| it.server_ns)),
            windows: all,
        })
    }

    /// Returns why a stack was left out, if it was.
    fn why(&self, at: &CellConditions) -> Option<String> {
        let of = |name: &str| self.results.left_out.iter().find(|it| it.is_stack(base(name)));
        let left_out = of(&at.client).or_else(|| of(&at.server))?;
        Some(format!("{} was left out: {}", left_out.what, left_out.reason))
    }

    /// Returns the connection strategies measured for this client.
    fn strategies(&self, name: &str) -> Vec<(String, Strategy)> {
        let of_client = |cell: &MergedCell<'_>| {
            let pair = cell.pair.filter(|pair| pair.client.name() == name)?;
            Some((pair.client.to_string(), strategy(cell)?))
        };
        distinct(self.cells.iter().filter_map(of_client))
    }

    /// Compares a stack's one connection with its fastest strategy of several. A ratio of at least `counts` is a shown
    /// gain.
    fn gain(&self, at: &CellConditions, counts: f64) -> ValueResult {
        let stack = &at.client;
        let one = self.at(&CellConditions { strategy: Some(Strategy::Fixed(1)), ..at.clone() })?;
        let has_several = |(client, strategy): &(String, Strategy)| {
            let several = match strategy {
                Strategy::Adaptive => true,
                Strategy::Fixed(connections) => *connections > 1,
                Strategy::PerWorker | Strategy::PerCall => false,
            };
            several && !client.ends_with(SHARED)
        };
        let strategies = self.strategies(stack).into_iter().filter(has_several);
        let measured = strategies.filter_map(|(client, strategy)| {
            self.at(&CellConditions { client, strategy: Some(strategy), ..at.clone() }).ok()
        });
        // An adaptive channel that stayed at one connection does not count as several.
        let measured = measured.filter(|cell| cell.connections.is_none_or(|connections| connections > 1));
        let several = measured.max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
        let several = several.ok_or_else(|| format!("{stack} with several connections was not measured"))?;
        let ratio = several
            .rate_over(&one)
            .ok_or_else(|| format!("{stack} has no round with both one connection and several"))?;
        let interval = ratio
            .interval
            .ok_or_else(|| format!("{stack} has too few valid windows to tell a gain from chance"))?;
        let is_shown = ratio.ratio >= counts && interval.low > 1.0;
        Ok([
            ("one", one.into()),
            ("several", several.into()),
            ("ratio", ratio.into()),
            ("shown", is_shown.into()),
        ]
        .into())
    }

    /// Returns system calls per operation of the smallest size, counted in a separate run.
    fn system_calls(&self, at: &CellConditions) -> ValueResult {
        let counted = self.results.system_calls.iter().find(|it| {
            it.pair.as_ref().is_some_and(|pair| at.is_of_pair(pair))
                && it.point.work == Work::Call(at.call)
                && it.point.in_flight == at.in_flight
        });
        let counted = counted.and_then(|counted| counted.measured());
        let counted = counted.ok_or("failed to count system calls (strace)")?;
        Ok(counted.client_per_operation.into())
    }

    /// Returns wire traffic between this client and its server.
    fn wire(&self, at: &CellConditions) -> ValueResult {
        let watched = self.results.wire.iter().find(|it| {
            it.pair.as_ref().is_some_and(|pair| pair.client.to_string() == at.client)
                && it.strategy == at.strategy
                && it.point.in_flight == at.in_flight
                && it.point.work == Work::Call(CallType::Unary)
        });
        let Some(wire) = watched.and_then(|watched| watched.measured()) else {
            return Err(format!("the wire between client and server of {} was not observed", at.client));
        };
        Ok([
            ("share", wire.all.share.into()),
            ("gap", middle_of_silence_ns(&wire.all).into()),
            ("p50", (wire.all.p50_ns as f64).into()),
        ]
        .into())
    }
}

/// Converts a connection strategy to a record, with its client's name.
fn strategy_record((client, strategy): (String, Strategy)) -> Value {
    let words = |text: String| Value::Words(text);
    [("client", words(client)), ("strategy", words(strategy.name())), ("title", words(strategy.to_string()))]
        .into()
}

/// Returns the gap length in ns at which half of the silent time lies in gaps as long or longer. Most gaps are short
/// ones between packets of a batch, which make up little of the time.
fn middle_of_silence_ns(idle: &IdleGaps) -> f64 {
    let time = |&(bound, gaps): &(u64, u64)| bound as f64 * gaps as f64;
    let half = idle.buckets.iter().map(time).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let middle = idle.buckets.iter().find(|bucket| {
        sum += time(bucket);
        sum >= half
    });
    middle.map_or(0.0, |&(bound, _)| bound as f64)
}

impl CellConditions {
    /// Reads the conditions from the scope. The server defaults to the client's own stack.
    fn of(scope: &Scope<'_>) -> Result<Self, String> {
        let client = scope.words("client")?;
        let server = match scope.get("server") {
            Some(_) => scope.words("server")?,
            None => base(&client).to_owned(),
        };
        let strategy = scope.get("strategy").map(|_| scope.words("strategy")).transpose()?;
        let strategy = strategy.map(|name| name.parse::<Strategy>().map_err(|error| error.to_string()));
        Ok(Self {
            server,
            client,
            call: scope.words("call")?.parse::<CallType>().map_err(|error| error.to_string())?,
            size: scope.number("size")? as u64,
            transport: if scope.words("transport")? == "uds" { Transport::Uds } else { Transport::Tcp },
            in_flight: scope.number("in_flight")? as u32,
            round_trip_ns: scope.number("round_trip")? as u64,
            strategy: strategy.transpose()?,
        })
    }

    fn is_of(&self, cell: &MergedCell<'_>) -> bool {
        let point = cell.point;
        cell.pair.is_some_and(|pair| self.is_of_pair(pair))
            && point.work == Work::Call(self.call)
            && point.size_bytes.0 == self.size
            && point.transport == self.transport
            && point.in_flight == self.in_flight
            && round_trip_ns(point) == self.round_trip_ns
            && strategy(cell) == self.strategy
    }

    fn is_of_pair(&self, pair: &Pair) -> bool {
        pair.client.to_string() == self.client && pair.server.to_string() == self.server
    }
}

/// Returns a stack's name without its variant.
fn base(client: &str) -> &str {
    client.split(':').next().unwrap_or(client)
}

fn strategy(cell: &MergedCell<'_>) -> Option<Strategy> {
    cell.all.first().and_then(|window| window.strategy)
}

fn round_trip_ns(point: &Point) -> u64 {
    u64::try_from(point.round_trip.as_nanos()).unwrap_or(u64::MAX)
}
