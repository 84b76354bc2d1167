//! What a connections study found: a cell for each load, in which every server stands beside the bare echo. Pure.

use thalweg_measure::statistics::{Ratio, median};
use thalweg_measure::usage::ServerMemory;

use crate::load::gathered::{Windows, distinct, grouped};
use crate::load::verdict::{Better, Compared};
use crate::load::{LabResults, Point, PointResult, Strategy};
use crate::record::{Fairness, LoadResult};
use crate::stack::{SOCKET, Stack};

/// With fewer connections what one of them holds is lost in what the server takes besides.
const MEMORY_CONNECTIONS_MIN: u32 = 100;

/// Everything that was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConnectionsCells<'r> {
    /// In the order of measuring: by ascending connections.
    pub(crate) loads: Vec<LoadCell<'r>>,
    /// New connections, plain and over TLS.
    pub(crate) arrivals: Vec<ServerCell<'r>>,
}

/// What a server has at a point of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Load {
    pub(crate) connections: u32,
    pub(crate) active: u32,
    /// On each active connection.
    pub(crate) in_flight: u32,
}

/// All that was measured at one load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoadCell<'r> {
    pub(crate) load: Load,
    /// The bare echo, and the servers with the same load.
    pub(crate) servers: Vec<ServerCell<'r>>,
    /// Stacks' own clients at their own servers.
    pub(crate) clients: Vec<Windows<'r>>,
}

/// A server under a load, or one to which new connections come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerCell<'r> {
    pub(crate) stack: &'r Stack,
    pub(crate) cell: Windows<'r>,
    /// Its processor time of a call ÷ the bare echo's of a message.
    pub(crate) over_floor: Option<Ratio>,
    /// Processor time of a call, or of a new connection: ours ÷ its. `None` of ours, and of the bare echo.
    pub(crate) ours_over: Option<Compared>,
}

/// Bytes that a connection holds at the server: what it grew by since the first, ÷ the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Memory {
    /// All of them idle, after a call.
    pub(crate) idle: f64,
    /// Under the load.
    pub(crate) loaded: f64,
}

/// How evenly the active connections were served; medians of the windows, of several connections alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Evenness {
    /// Jain's index: 1 is even.
    pub(crate) jain: f64,
    /// Calls of the connection that had fewest, ÷ the mean.
    pub(crate) least: f64,
    /// Of the one that had most.
    pub(crate) most: f64,
}

impl<'r> ServerCell<'r> {
    fn of(stack: &'r Stack, cell: Windows<'r>) -> Self {
        Self { stack, cell, over_floor: None, ours_over: None }
    }

    /// It is the bare echo.
    pub(crate) fn is_floor(&self) -> bool {
        self.stack.name() == SOCKET
    }

    /// Processor time of a call, ns.
    pub(crate) fn ns(&self) -> Option<f64> {
        Some(self.cell.server()?.ns())
    }

    /// Whatever is not the bare echo, beside that.
    pub(crate) fn over_echo(&self) -> Option<Ratio> {
        self.over_floor.filter(|_| !self.is_floor())
    }
}

/// Compares the servers' processor time with that of the bare echo, and ours with the others'. Each window has
/// processes of its own, so what differs from process to process is in the interval, and there is no noise floor
/// besides.
fn compare(servers: &mut [ServerCell<'_>]) {
    let of = |stack: &Stack| servers.iter().find(|it| it.stack == stack).map(|it| it.cell.clone());
    let (floor, ours) = (of(&Stack::socket()), of(&Stack::ours()));
    for server in servers {
        let over = |one: &Windows<'_>, other: &Windows<'_>| one.over(other, |window| window.server_ns);
        server.over_floor = floor.as_ref().and_then(|floor| over(&server.cell, floor));
        if !server.stack.is_ours() && !server.is_floor() {
            let compared = |ours| Compared::new(over(ours, &server.cell), 0.0, Better::Less);
            server.ours_over = ours.as_ref().map(compared);
        }
    }
}

impl<'r> ConnectionsCells<'r> {
    pub(crate) fn of(results: &'r LabResults) -> Self {
        let cells = results.gathered().into_iter().filter(|cell| cell.latency().is_some());
        let (arriving, loaded): (Vec<_>, Vec<_>) =
            cells.partition(|cell| cell.strategy == Some(Strategy::PerCall));
        let servers = |cells: Vec<Windows<'r>>| {
            let server = |cell: Windows<'r>| Some(ServerCell::of(&cell.pair?.server, cell));
            let mut servers: Vec<ServerCell<'r>> = cells.into_iter().filter_map(server).collect();
            compare(&mut servers);
            servers
        };
        let load = |(load, cells): (Option<Load>, Vec<Windows<'r>>)| {
            let is_bare = |cell: &Windows<'_>| cell.pair.is_some_and(|pair| pair.client == Stack::bare());
            let (by_bare, clients) = cells.into_iter().partition(is_bare);
            Some(LoadCell { load: load?, servers: servers(by_bare), clients })
        };
        let mut loads: Vec<LoadCell<'r>> =
            grouped(loaded, |cell| load_of(cell.point)).into_iter().filter_map(load).collect();
        loads.sort_by_key(|cell| cell.load);
        let arrivals = grouped(arriving, |cell| cell.point.tls).into_iter();
        Self { loads, arrivals: arrivals.flat_map(|(_, cells)| servers(cells)).collect() }
    }

    /// The same without figures of which too few windows are valid for a claim: fewer than an interval needs, and not
    /// all.
    pub(crate) fn sure(&self) -> Self {
        let mut sure = self.clone();
        for cell in &mut sure.loads {
            cell.servers.retain(|server| server.cell.is_sure());
            cell.clients.retain(Windows::is_sure);
        }
        sure.loads.retain(|cell| !cell.servers.is_empty());
        sure.arrivals.retain(|server| server.cell.is_sure());
        sure
    }

    /// What stands beside a window: the server's cell.
    pub(crate) fn server(&self, window: &PointResult) -> Option<&ServerCell<'r>> {
        let pair = window.pair.as_ref().filter(|pair| pair.client == Stack::bare())?;
        self.at(load_of(&window.point)?)?.server(&pair.server)
    }

    /// At a load.
    pub(crate) fn at(&self, load: Load) -> Option<&LoadCell<'r>> {
        self.loads.iter().find(|cell| cell.load == load)
    }

    /// Servers, the bare echo last, each once.
    pub(crate) fn stacks(&self) -> Vec<&'r Stack> {
        let mut stacks =
            distinct(self.loads.iter().flat_map(|cell| &cell.servers).map(|server| server.stack));
        stacks.sort_by_key(|stack| stack.name() == SOCKET);
        stacks
    }

    /// Loads of all connections, with the fewest calls on each, by ascending connections: the curve that says most.
    pub(crate) fn all_active(&self) -> Vec<&LoadCell<'r>> {
        let whole = || self.loads.iter().filter(|cell| cell.load.active == cell.load.connections);
        let fewest = whole().map(|cell| cell.load.in_flight).min();
        whole().filter(|cell| Some(cell.load.in_flight) == fewest).collect()
    }
}

/// What the server had; `None` of new connections.
pub(crate) fn load_of(point: &Point) -> Option<Load> {
    let active = point.active?;
    Some(Load { connections: point.connections, active, in_flight: point.in_flight / active.max(1) })
}

impl<'r> LoadCell<'r> {
    /// Of this stack, under the bare client.
    pub(crate) fn server(&self, stack: &Stack) -> Option<&ServerCell<'r>> {
        self.servers.iter().find(|server| server.stack == stack)
    }

    /// Ours, or, at somebody else's server, that.
    pub(crate) fn ours(&self) -> Option<&ServerCell<'r>> {
        self.server(&Stack::ours()).or_else(|| self.server(&Stack::target()))
    }
}

/// What a connection holds. Memory does not depend on who else ran: all windows count that were measured.
pub(crate) fn memory(windows: &Windows<'_>) -> Option<Memory> {
    let others = windows.point.connections.saturating_sub(1);
    if windows.point.connections < MEMORY_CONNECTIONS_MIN {
        return None;
    }
    let seen = || windows.all.iter().filter_map(|window| window.usage?.server_memory);
    let of_each = |bytes: fn(ServerMemory) -> u64| {
        let grown = seen().map(|memory| bytes(memory).saturating_sub(memory.first) as f64);
        median(grown).map(|bytes| bytes / f64::from(others))
    };
    Some(Memory { idle: of_each(|memory| memory.connected)?, loaded: of_each(|memory| memory.measuring)? })
}

/// Of the valid windows.
pub(crate) fn evenness(windows: &Windows<'_>) -> Option<Evenness> {
    let several = |(_, load): (&PointResult, &LoadResult)| {
        let fairness = load.fairness.filter(|it| it.connections > 1)?;
        Some((fairness, load.messages.max(1) as f64 / f64::from(fairness.connections)))
    };
    let seen: Vec<(Fairness, f64)> = windows.valid().filter_map(several).collect();
    let share = |calls: fn(&Fairness) -> u64| median(seen.iter().map(|(it, mean)| calls(it) as f64 / mean));
    Some(Evenness {
        jain: median(seen.iter().map(|(fairness, _)| fairness.jain))?,
        least: share(|fairness| fairness.least)?,
        most: share(|fairness| fairness.most)?,
    })
}
