//! What a connections study found: a cell for each load, in which every server stands beside the bare echo. Pure.

use thalweg_measure::distribution::Latency;
use thalweg_measure::statistics::{Interval, Ratio, median};
use thalweg_measure::usage::ServerMemory;

use crate::load::gathered::{Windows, gathered};
use crate::load::paired::{PairedWindow, excluded, interval, ratio};
use crate::load::used::Used;
use crate::load::verdict::{Better, Compared};
use crate::load::{LabResults, PointResult, Strategy};
use crate::record::{Fairness, LoadResult};
use crate::stack::{SOCKET, Stack};

/// With fewer connections what one of them holds is lost in what the server takes besides.
const MEMORY_CONNECTIONS_MIN: u32 = 100;

/// Everything that was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cells {
    /// In the order of measuring: by ascending connections.
    pub(crate) loads: Vec<LoadCell>,
    /// New connections, plain and over TLS.
    pub(crate) arrivals: Vec<Arrivals>,
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
pub(crate) struct LoadCell {
    pub(crate) load: Load,
    /// The bare echo, and the servers with the same load.
    pub(crate) servers: Vec<Server>,
    /// Stacks' own clients at their own servers.
    pub(crate) clients: Vec<Client>,
}

/// A server under the bare client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Server {
    pub(crate) stack: Stack,
    pub(crate) figures: Figures,
    /// Its processor time of a call ÷ the bare echo's of a message.
    pub(crate) over_floor: Option<Ratio>,
    /// Ours ÷ its; `None` of ours, and of the bare echo.
    pub(crate) ours_over: Option<Compared>,
}

/// A stack's own client at its own server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Client {
    pub(crate) stack: Stack,
    pub(crate) figures: Figures,
}

/// New connections at one server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arrivals {
    pub(crate) stack: Stack,
    pub(crate) tls: bool,
    /// Connections that arrive at a time.
    pub(crate) at_a_time: u32,
    pub(crate) figures: Figures,
    /// Ours ÷ its, the server's processor time of a connection; `None` of ours.
    pub(crate) ours_over: Option<Compared>,
}

/// What the windows of one pair at one point came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    /// In the order of rounds.
    pub(crate) windows: Vec<PairedWindow>,
    pub(crate) rate_per_s: f64,
    pub(crate) rate_interval: Option<Interval>,
    pub(crate) latency: Latency,
    pub(crate) client: Option<Used>,
    pub(crate) server: Option<Used>,
    /// Where the server's processor time of a call lies with a confidence of 95 %.
    pub(crate) server_interval: Option<Interval>,
    pub(crate) memory: Option<Memory>,
    pub(crate) fairness: Option<Evenness>,
    /// In the kernel's tables; the median of the windows.
    pub(crate) established: Option<u32>,
    pub(crate) errors: u64,
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

impl Server {
    /// It is the bare echo.
    pub(crate) fn is_floor(&self) -> bool {
        self.stack.name() == SOCKET
    }

    /// Processor time of a call, ns.
    pub(crate) fn ns(&self) -> Option<f64> {
        Some(self.figures.server?.ns())
    }
}

impl Cells {
    pub(crate) fn of(results: &LabResults) -> Self {
        let (mut loads, mut arrivals): (Vec<LoadCell>, Vec<Arrivals>) = (Vec::new(), Vec::new());
        for windows in gathered(&results.points) {
            let (Some(pair), Some(figures)) = (windows.pair, figures(&windows)) else { continue };
            if windows.all[0].strategy == Some(Strategy::PerCall) {
                let (stack, point) = (pair.server.clone(), windows.point);
                let (tls, at_a_time) = (point.tls, point.in_flight);
                arrivals.push(Arrivals { stack, tls, at_a_time, figures, ours_over: None });
                continue;
            }
            let Some(load) = load_of(windows.all[0]) else { continue };
            let at = loads.iter().position(|cell| cell.load == load).unwrap_or_else(|| {
                loads.push(LoadCell { load, servers: Vec::new(), clients: Vec::new() });
                loads.len() - 1
            });
            if pair.client == Stack::bare() {
                let stack = pair.server.clone();
                loads[at].servers.push(Server { stack, figures, over_floor: None, ours_over: None });
            } else {
                loads[at].clients.push(Client { stack: pair.client.clone(), figures });
            }
        }
        loads.iter_mut().for_each(LoadCell::compare);
        compare_arrivals(&mut arrivals);
        loads.sort_by_key(|cell| cell.load);
        Self { loads, arrivals }
    }

    /// The same without figures of which too few windows are valid for a claim: fewer than an interval needs, and not
    /// all.
    pub(crate) fn sure(&self) -> Self {
        let is_sure = |figures: &Figures| figures.rate_interval.is_some() || excluded(&figures.windows) == 0;
        let mut sure = self.clone();
        for cell in &mut sure.loads {
            cell.servers.retain(|server| is_sure(&server.figures));
            cell.clients.retain(|client| is_sure(&client.figures));
        }
        sure.loads.retain(|cell| !cell.servers.is_empty());
        sure.arrivals.retain(|arrivals| is_sure(&arrivals.figures));
        sure
    }

    /// What stands beside a window: the server's cell.
    pub(crate) fn server(&self, window: &PointResult) -> Option<&Server> {
        let pair = window.pair.as_ref().filter(|pair| pair.client == Stack::bare())?;
        let load = load_of(window)?;
        self.at(load)?.server(&pair.server)
    }

    /// At a load.
    pub(crate) fn at(&self, load: Load) -> Option<&LoadCell> {
        self.loads.iter().find(|cell| cell.load == load)
    }

    /// Servers, the bare echo last, each once.
    pub(crate) fn stacks(&self) -> Vec<&Stack> {
        let mut stacks: Vec<&Stack> = Vec::new();
        for server in self.loads.iter().flat_map(|cell| &cell.servers) {
            if !stacks.contains(&&server.stack) {
                stacks.push(&server.stack);
            }
        }
        stacks.sort_by_key(|stack| stack.name() == SOCKET);
        stacks
    }

    /// Loads of all connections, with the fewest calls on each, by ascending connections: the curve that says most.
    pub(crate) fn all_active(&self) -> Vec<&LoadCell> {
        let whole = || self.loads.iter().filter(|cell| cell.load.active == cell.load.connections);
        let fewest = whole().map(|cell| cell.load.in_flight).min();
        whole().filter(|cell| Some(cell.load.in_flight) == fewest).collect()
    }
}

/// What the window's server had; `None` of new connections.
pub(crate) fn load_of(window: &PointResult) -> Option<Load> {
    let point = &window.point;
    let active = point.active?;
    Some(Load { connections: point.connections, active, in_flight: point.in_flight / active.max(1) })
}

impl LoadCell {
    /// Of this stack, under the bare client.
    pub(crate) fn server(&self, stack: &Stack) -> Option<&Server> {
        self.servers.iter().find(|server| server.stack == *stack)
    }

    /// Ours, or, at somebody else's server, that.
    pub(crate) fn ours(&self) -> Option<&Server> {
        self.server(&Stack::ours()).or_else(|| self.server(&Stack::target()))
    }

    fn compare(&mut self) {
        let windows = |stack: &Stack| self.server(stack).map(|server| server.figures.windows.clone());
        let (floor, ours) = (windows(&Stack::socket()), windows(&Stack::ours()));
        for server in &mut self.servers {
            let own = &server.figures.windows;
            server.over_floor = floor.as_ref().and_then(|floor| ratio(own, floor, |window| window.server_ns));
            if !server.stack.is_ours() && !server.is_floor() {
                server.ours_over = ours.as_ref().map(|ours| compared(ours, own));
            }
        }
    }
}

fn compare_arrivals(arrivals: &mut [Arrivals]) {
    for tls in [false, true] {
        let ours = arrivals.iter().find(|it| it.tls == tls && it.stack.is_ours());
        let Some(ours) = ours.map(|ours| ours.figures.windows.clone()) else { continue };
        for other in arrivals.iter_mut().filter(|it| it.tls == tls && !it.stack.is_ours()) {
            other.ours_over = Some(compared(&ours, &other.figures.windows));
        }
    }
}

/// The server's processor time, ours ÷ theirs. Each window has processes of its own, so what differs from process to
/// process is in the interval, and there is no noise floor besides.
fn compared(ours: &[PairedWindow], theirs: &[PairedWindow]) -> Compared {
    Compared::new(ratio(ours, theirs, |window| window.server_ns), 0.0, Better::Less)
}

fn figures(windows: &Windows<'_>) -> Option<Figures> {
    let merged = windows.merged()?;
    let rounds: Vec<PairedWindow> = windows.all.iter().map(|&window| PairedWindow::of(window)).collect();
    let established = windows.valid().filter_map(|(_, load)| load.connections.established);
    let established = established.map(f64::from);
    Some(Figures {
        rate_interval: interval(&rounds, |window| window.rate_per_s),
        server_interval: interval(&rounds, |window| window.server_ns),
        windows: rounds,
        rate_per_s: merged.rate_per_s,
        latency: merged.latency_ns?,
        client: windows.used(|usage| &usage.client),
        server: windows.used(|usage| &usage.server),
        memory: memory(windows),
        fairness: evenness(windows),
        established: median(established).map(|connections| connections.round() as u32),
        errors: merged.error_count(),
    })
}

/// Memory does not depend on who else ran: all windows count that were measured.
fn memory(windows: &Windows<'_>) -> Option<Memory> {
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

fn evenness(windows: &Windows<'_>) -> Option<Evenness> {
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
