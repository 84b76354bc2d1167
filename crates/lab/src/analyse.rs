//! What the figures of a study say. Pure: results in, findings out.

pub mod bootstrap;
pub mod channels;
pub mod compare;
pub mod windows;
mod words;

use crate::plan::{Pattern, Transport, Work};
use crate::record::{CallType, Latency, Spike};
use crate::results::LabResults;
use crate::size::ByteSize;

pub use compare::{Comparison, compare};
pub use words::{Finding, Headline, answer, doubts, findings, headlines};

/// A median latency above this many times the plateau's has left it.
pub const PLATEAU_FACTOR: f64 = 1.5;
/// The plateau's height is the median over this many of the smallest sizes.
const PLATEAU_SIZES: usize = 3;

/// The lines of a study's plots, and what can be said of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// Calls first, then the sockets; of each, one transport after the other.
    pub lines: Vec<Line>,
}

/// One way of moving messages, over sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it is.
    pub kind: Kind,
    /// What carries it.
    pub transport: Transport,
    /// What was measured, by size, ascending. Sizes at which nothing succeeded are missing.
    pub cells: Vec<Cell>,
}

/// What makes points one line: everything but the size and the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// What moves the messages.
    pub work: Work,
    /// How many under way.
    pub in_flight: u32,
}

/// One point of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Payload bytes of a message.
    pub size: ByteSize,
    /// Operations per second.
    pub rate_per_s: f64,
    /// Payload bytes per second, counted in one direction.
    pub bytes_per_s: f64,
    /// Of one operation.
    pub latency: Latency,
    /// No note forbids using the figures.
    pub valid: bool,
    /// The largest latencies with their time.
    pub spikes: Vec<Spike>,
    /// This rate, divided by the bare socket's at the same size and transport. `None` for the socket itself.
    pub share_of_socket: Option<f64>,
}

/// Where a line's latency is flat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plateau {
    /// The plateau's median latency, ns.
    pub level_ns: u64,
    /// The largest size on the plateau.
    pub last: ByteSize,
    /// The first size beyond it and its median latency, ns; `None` when every size is on the plateau.
    pub leaves: Option<(ByteSize, u64)>,
}

/// Arranges what the [reference](LabResults::reference) pair and the bare sockets did as lines, and compares each with
/// the socket's. The windows of a point are one cell.
pub fn analyse(results: &LabResults) -> Analysis {
    let ours = results.reference();
    let mut lines: Vec<Line> = Vec::new();
    for windows in windows::gathered(&results.points) {
        if windows.pair.is_some_and(|pair| *pair != ours) {
            continue;
        }
        let point = windows.point;
        let Some((measured, latency)) = windows.merged().and_then(|it| it.latency_ns.map(|l| (it, l))) else {
            continue;
        };
        let kind = Kind { work: point.work, in_flight: point.in_flight };
        let known = lines.iter().position(|line| (line.kind, line.transport) == (kind, point.transport));
        let index = known.unwrap_or_else(|| {
            lines.push(Line { kind, transport: point.transport, cells: Vec::new() });
            lines.len() - 1
        });
        lines[index].cells.push(Cell {
            size: point.size_bytes,
            rate_per_s: measured.rate_per_s,
            bytes_per_s: measured.rate_per_s * point.size_bytes.0 as f64,
            latency,
            valid: measured.is_valid(),
            spikes: measured.spikes,
            share_of_socket: None,
        });
    }
    for line in &mut lines {
        line.cells.sort_by_key(|cell| cell.size);
    }
    lines.sort_by_key(|line| (line.kind, line.transport));
    let analysis = Analysis { lines };
    analysis.clone().with_shares(&analysis)
}

impl Analysis {
    /// Lines of gRPC calls.
    pub fn calls(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| matches!(line.kind.work, Work::Call(_)))
    }

    /// Every size that some line has, ascending.
    pub fn sizes(&self) -> Vec<ByteSize> {
        let mut sizes: Vec<_> =
            self.lines.iter().flat_map(|line| line.cells.iter().map(|cell| cell.size)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Every transport that some line has.
    pub fn transports(&self) -> Vec<Transport> {
        Transport::ALL
            .into_iter()
            .filter(|&transport| self.lines.iter().any(|l| l.transport == transport))
            .collect()
    }

    /// The line of this kind and transport.
    pub fn line(&self, kind: Kind, transport: Transport) -> Option<&Line> {
        self.lines.iter().find(|line| (line.kind, line.transport) == (kind, transport))
    }

    /// The bare socket's line that limits this kind: of the same pattern, with as many in flight, or else with the
    /// most.
    pub fn limit_of(&self, kind: Kind, transport: Transport) -> Option<&Line> {
        let Work::Call(call) = kind.work else { return None };
        let work = Work::Socket(Pattern::of(call));
        let limits = || self.lines.iter().filter(|l| (l.kind.work, l.transport) == (work, transport));
        let same = (call == CallType::Unary)
            .then(|| limits().find(|limit| limit.kind.in_flight == kind.in_flight))
            .flatten();
        same.or_else(|| limits().max_by_key(|limit| limit.kind.in_flight))
    }

    /// The kind of call that moves the most messages at this size.
    pub fn fastest_at(&self, size: ByteSize, transport: Transport) -> Option<&Line> {
        self.calls()
            .filter(|line| line.transport == transport)
            .filter_map(|line| Some((line, line.at(size)?.rate_per_s)))
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
            .map(|(line, _)| line)
    }

    fn with_shares(mut self, all: &Self) -> Self {
        for line in &mut self.lines {
            let Some(limit) = all.limit_of(line.kind, line.transport) else { continue };
            for cell in &mut line.cells {
                let most = limit.at(cell.size).map(|limit| limit.rate_per_s).filter(|&rate| rate > 0.0);
                cell.share_of_socket = most.map(|most| cell.rate_per_s / most);
            }
        }
        self
    }
}

impl Line {
    /// What was measured at this size.
    pub fn at(&self, size: ByteSize) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.size == size)
    }

    /// The size of most bytes per second.
    pub fn best_throughput(&self) -> Option<&Cell> {
        self.cells
            .iter()
            .filter(|c| c.bytes_per_s > 0.0)
            .max_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
    }

    /// The size of most operations per second.
    pub fn best_rate(&self) -> Option<&Cell> {
        self.cells.iter().max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))
    }

    /// Where the median latency is flat, counted from the smallest size. The plateau ends behind the *last* size
    /// that is on it, so that one disturbed point in its midst does not end it. `None` with fewer than three sizes.
    pub fn plateau(&self) -> Option<Plateau> {
        let mut smallest: Vec<u64> =
            self.cells.get(..PLATEAU_SIZES)?.iter().map(|cell| cell.latency.p50).collect();
        smallest.sort_unstable();
        let level_ns = smallest[PLATEAU_SIZES / 2];
        let on_plateau = |cell: &Cell| cell.latency.p50 as f64 <= PLATEAU_FACTOR * level_ns as f64;
        let last = self.cells.iter().rposition(on_plateau)?;
        let leaves = self.cells.get(last + 1).map(|cell| (cell.size, cell.latency.p50));
        Some(Plateau { level_ns, last: self.cells[last].size, leaves })
    }
}

impl Kind {
    /// A lone unary call: the latency that one caller sees.
    pub const LONE_CALL: Self = Self { work: Work::Call(CallType::Unary), in_flight: 1 };

    /// The kind in a sentence, in the plural: `lone unary calls`.
    pub fn phrase(self) -> String {
        match (self.work, self.in_flight) {
            (Work::Call(CallType::Unary), 1) => "lone unary calls".to_owned(),
            (Work::Call(CallType::Unary), in_flight) => format!("{in_flight} unary calls in flight"),
            (Work::Call(_), 1) => self.label() + "s",
            _ => self.label(),
        }
    }

    /// The kind's name in tables and legends.
    pub fn label(self) -> String {
        let in_flight = self.in_flight;
        let under_way = match in_flight {
            1 => "one at a time".to_owned(),
            _ => format!("{in_flight} in flight"),
        };
        match self.work {
            Work::Call(CallType::Unary) => format!("unary, {under_way}"),
            Work::Call(call) => {
                let name = call.name().replace('-', " ");
                if in_flight == 1 { name } else { format!("{in_flight} {name}s") }
            }
            Work::Socket(Pattern::Echo) => format!("bare socket echo, {under_way}"),
            Work::Socket(Pattern::Pipelined) => "bare socket echo, pipelined".to_owned(),
            Work::Socket(Pattern::OneWay) => "bare socket, one way".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
