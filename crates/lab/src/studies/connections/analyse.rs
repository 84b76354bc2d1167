//! Analysis of a connections study: a cell per load, which compares every server with the bare echo. Pure.

use thalweg_measure::statistics::{Ratio, median};
use thalweg_measure::usage::ServerMemory;

use crate::load::gathered::{MergedCell, distinct, grouped};
use crate::load::verdict::{Better, JudgedRatio};
use crate::load::{LabResults, Point, PointResult, Strategy};
use crate::record::{Fairness, LoadResult};
use crate::stack::{SOCKET, Stack};

/// Fewest connections for memory figures. With fewer, a connection's memory is lost in the server's other memory.
const MEMORY_CONNECTIONS_MIN: u32 = 100;

/// Results of a connections study.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConnectionsCells<'r> {
    /// Loads in the order of measuring, by ascending connections.
    pub(crate) loads: Vec<LoadCell<'r>>,
    /// New connections, plain and over TLS.
    pub(crate) arrivals: Vec<ServerCell<'r>>,
}

/// Load of a server at a point of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Load {
    pub(crate) connections: u32,
    pub(crate) active: u32,
    /// Calls in flight on each active connection.
    pub(crate) in_flight: u32,
}

/// Results at one load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoadCell<'r> {
    pub(crate) load: Load,
    /// The bare echo, and the servers under the same load.
    pub(crate) servers: Vec<ServerCell<'r>>,
    /// Stacks' own clients with their own servers.
    pub(crate) clients: Vec<MergedCell<'r>>,
}

/// A server under load, or with new connections.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerCell<'r> {
    pub(crate) stack: &'r Stack,
    pub(crate) cell: MergedCell<'r>,
    /// Its processor time per call ÷ the bare echo's per message.
    pub(crate) over_floor: Option<Ratio>,
    /// Processor time per call or new connection: ours ÷ its. `None` for ours and for the bare echo.
    pub(crate) ours_over: Option<JudgedRatio>,
}

/// Server memory per connection, in bytes: growth since the first connection ÷ the number of others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Memory {
    /// All connections idle, after a call each.
    pub(crate) idle: f64,
    /// Under load.
    pub(crate) loaded: f64,
}

/// Fairness among several active connections, as medians over windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Evenness {
    /// Jain's index; 1 is perfectly even.
    pub(crate) jain: f64,
    /// Fewest calls of a connection ÷ the mean.
    pub(crate) least: f64,
    /// Most calls of a connection ÷ the mean.
    pub(crate) most: f64,
}

impl<'r> ServerCell<'r> {
    fn of(stack: &'r Stack, cell: MergedCell<'r>) -> Self {
        Self { stack, cell, over_floor: None, ours_over: None }
    }

    /// Returns whether it is the bare echo.
    pub(crate) fn is_floor(&self) -> bool {
        self.stack.name() == SOCKET
    }

    /// Returns processor time per call in ns.
    pub(crate) fn ns(&self) -> Option<f64> {
        Some(self.cell.server()?.ns())
    }

    /// Returns the ratio to the bare echo; `None` for the bare echo.
    pub(crate) fn over_echo(&self) -> Option<Ratio> {
        self.over_floor.filter(|_| !self.is_floor())
    }
}

/// Compares the servers' processor time with the bare echo's, and ours with the others'. Each window has its own
/// processes, so the interval includes their variation and no noise floor is needed.
fn compare(servers: &mut [ServerCell<'_>]) {
    let of = |stack: &Stack| servers.iter().find(|it| it.stack == stack).map(|it| it.cell.clone());
    let (floor, ours) = (of(&Stack::socket()), of(&Stack::ours()));
    for server in servers {
        let over =
            |one: &MergedCell<'_>, other: &MergedCell<'_>| one.ratio_to(other, |window| window.server_ns);
        server.over_floor = floor.as_ref().and_then(|floor| over(&server.cell, floor));
        if !server.stack.is_ours() && !server.is_floor() {
            let compared = |ours| JudgedRatio::new(over(ours, &server.cell), 0.0, Better::Less);
            server.ours_over = ours.as_ref().map(compared);
        }
    }
}

impl<'r> ConnectionsCells<'r> {
    pub(crate) fn of(results: &'r LabResults) -> Self {
        let cells = results.gather_cells().into_iter().filter(|cell| cell.latency().is_some());
        let (arriving, loaded): (Vec<_>, Vec<_>) =
            cells.partition(|cell| cell.strategy == Some(Strategy::PerCall));
        let servers = |cells: Vec<MergedCell<'r>>| {
            let server = |cell: MergedCell<'r>| Some(ServerCell::of(&cell.pair?.server, cell));
            let mut servers: Vec<ServerCell<'r>> = cells.into_iter().filter_map(server).collect();
            compare(&mut servers);
            servers
        };
        let load = |(load, cells): (Option<Load>, Vec<MergedCell<'r>>)| {
            let is_bare = |cell: &MergedCell<'_>| cell.pair.is_some_and(|pair| pair.client == Stack::bare());
            let (by_bare, clients) = cells.into_iter().partition(is_bare);
            Some(LoadCell { load: load?, servers: servers(by_bare), clients })
        };
        let mut loads: Vec<LoadCell<'r>> =
            grouped(loaded, |cell| load_of(cell.point)).into_iter().filter_map(load).collect();
        loads.sort_by_key(|cell| cell.load);
        let arrivals = grouped(arriving, |cell| cell.point.tls).into_iter();
        Self { loads, arrivals: arrivals.flat_map(|(_, cells)| servers(cells)).collect() }
    }

    /// Returns only the cells with enough valid windows for a claim: as many as an interval needs, or all.
    pub(crate) fn with_enough_windows(&self) -> Self {
        let mut sure = self.clone();
        for cell in &mut sure.loads {
            cell.servers.retain(|server| server.cell.has_enough_windows());
            cell.clients.retain(MergedCell::has_enough_windows);
        }
        sure.loads.retain(|cell| !cell.servers.is_empty());
        sure.arrivals.retain(|server| server.cell.has_enough_windows());
        sure
    }

    /// Returns the server cell of a window.
    pub(crate) fn server(&self, window: &PointResult) -> Option<&ServerCell<'r>> {
        let pair = window.pair.as_ref().filter(|pair| pair.client == Stack::bare())?;
        self.at(load_of(&window.point)?)?.server(&pair.server)
    }

    /// Returns the cell of a load.
    pub(crate) fn at(&self, load: Load) -> Option<&LoadCell<'r>> {
        self.loads.iter().find(|cell| cell.load == load)
    }

    /// Returns the distinct servers, with the bare echo last.
    pub(crate) fn stacks(&self) -> Vec<&'r Stack> {
        let mut stacks =
            distinct(self.loads.iter().flat_map(|cell| &cell.servers).map(|server| server.stack));
        stacks.sort_by_key(|stack| stack.name() == SOCKET);
        stacks
    }

    /// Returns the most informative curve: loads with all connections active and the fewest calls on each, by
    /// ascending connections.
    pub(crate) fn all_active(&self) -> Vec<&LoadCell<'r>> {
        let whole = || self.loads.iter().filter(|cell| cell.load.active == cell.load.connections);
        let fewest = whole().map(|cell| cell.load.in_flight).min();
        whole().filter(|cell| Some(cell.load.in_flight) == fewest).collect()
    }
}

/// Returns a point's load; `None` for new connections.
pub(crate) fn load_of(point: &Point) -> Option<Load> {
    let active = point.active?;
    Some(Load { connections: point.connections, active, in_flight: point.in_flight / active.max(1) })
}

impl<'r> LoadCell<'r> {
    /// Returns the cell of a stack's server under the bare client.
    pub(crate) fn server(&self, stack: &Stack) -> Option<&ServerCell<'r>> {
        self.servers.iter().find(|server| server.stack == stack)
    }

    /// Returns our cell, or the external server's.
    pub(crate) fn ours(&self) -> Option<&ServerCell<'r>> {
        self.server(&Stack::ours()).or_else(|| self.server(&Stack::target()))
    }
}

/// Returns the memory per connection. All measured windows count, because memory does not depend on other programs.
pub(crate) fn memory(windows: &MergedCell<'_>) -> Option<Memory> {
    let others = windows.point.connections.saturating_sub(1);
    if windows.point.connections < MEMORY_CONNECTIONS_MIN {
        return None;
    }
    let observed = || windows.all.iter().filter_map(|window| window.usage?.server_memory);
    let of_each = |bytes: fn(ServerMemory) -> u64| {
        let grown = observed().map(|memory| bytes(memory).saturating_sub(memory.first) as f64);
        median(grown).map(|bytes| bytes / f64::from(others))
    };
    Some(Memory { idle: of_each(|memory| memory.connected)?, loaded: of_each(|memory| memory.measuring)? })
}

/// Returns the evenness over the valid windows.
pub(crate) fn evenness(windows: &MergedCell<'_>) -> Option<Evenness> {
    let several = |(_, load): (&PointResult, &LoadResult)| {
        let fairness = load.fairness.filter(|it| it.connections > 1)?;
        Some((fairness, load.messages.max(1) as f64 / f64::from(fairness.connections)))
    };
    let observed: Vec<(Fairness, f64)> = windows.valid().filter_map(several).collect();
    let share =
        |calls: fn(&Fairness) -> u64| median(observed.iter().map(|(it, mean)| calls(it) as f64 / mean));
    Some(Evenness {
        jain: median(observed.iter().map(|(fairness, _)| fairness.jain))?,
        least: share(|fairness| fairness.least)?,
        most: share(|fairness| fairness.most)?,
    })
}
