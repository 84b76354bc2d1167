//! What our own pair and the bare sockets did, as lines over message sizes. Pure: results in, lines out.

use thalweg_measure::distribution::Latency;
use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::Interval;

use crate::load::gathered::gathered;
use crate::load::noise::Noise;
use crate::load::paired::{PairedWindow, excluded, interval, ratio};
use crate::load::verdict::{Better, Compared};
use crate::load::{Kind, LabResults, Pattern, Transport, Work};
use crate::record::{CallType, Pace, Spike};

/// A median latency above this many times the plateau's has left it.
pub(crate) const PLATEAU_FACTOR: f64 = 1.5;
/// The plateau's height is the median over this many of the smallest sizes.
const PLATEAU_SIZES: usize = 3;

/// The lines of a study's plots, and what can be said of each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Analysis {
    /// Calls first, then the sockets; of each, one transport after the other.
    pub(crate) lines: Vec<Line>,
    /// How small a difference the study can see.
    pub(crate) noise: Noise,
}

/// One way of moving messages, over sizes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    /// What it is.
    pub(crate) kind: Kind,
    /// What carries it.
    pub(crate) transport: Transport,
    /// What was measured, by size, ascending. Sizes at which nothing succeeded are missing.
    pub(crate) cells: Vec<Cell>,
}

/// One point of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    /// Payload bytes of a message.
    pub(crate) size: ByteSize,
    /// What it was measured by, in the order of rounds.
    pub(crate) windows: Vec<PairedWindow>,
    /// Operations per second: the geometric mean of the windows.
    pub(crate) rate_per_s: f64,
    /// Where the rate lies with a confidence of 95 %; `None` with too few windows.
    pub(crate) rate_interval: Option<Interval>,
    /// Payload bytes per second, counted in one direction.
    pub(crate) bytes_per_s: f64,
    /// Of one operation; `None` of messages one way.
    pub(crate) latency: Option<Latency>,
    /// Where the median latency lies with a confidence of 95 %.
    pub(crate) p50_interval: Option<Interval>,
    /// Of messages one way.
    pub(crate) pace: Option<Pace>,
    /// The client was the limit.
    pub(crate) is_limited: bool,
    /// The largest latencies with their time.
    pub(crate) spikes: Vec<Spike>,
    /// This rate, divided by the bare socket's at the same size and transport. `None` for the socket itself.
    pub(crate) share_of_socket: Option<f64>,
}

/// Where a line's latency is flat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plateau {
    /// The plateau's median latency, ns.
    pub(crate) level_ns: u64,
    /// The largest size on the plateau.
    pub(crate) last: ByteSize,
    /// The first size beyond it and its median latency, ns; `None` when every size is on the plateau.
    pub(crate) leaves: Option<(ByteSize, u64)>,
}

/// Arranges what the [reference](LabResults::reference) pair and the bare sockets did as lines, and compares each with
/// the socket's. The windows of a point are one cell.
pub(crate) fn analyse(results: &LabResults) -> Analysis {
    let ours = results.reference();
    let mut lines: Vec<Line> = Vec::new();
    for windows in gathered(&results.points) {
        if windows.pair.is_some_and(|pair| *pair != ours) {
            continue;
        }
        let point = windows.point;
        let Some(measured) = windows.merged() else { continue };
        let kind = Kind::of(point);
        let known = lines.iter().position(|line| (line.kind, line.transport) == (kind, point.transport));
        let index = known.unwrap_or_else(|| {
            lines.push(Line { kind, transport: point.transport, cells: Vec::new() });
            lines.len() - 1
        });
        let rounds: Vec<PairedWindow> = windows.all.iter().map(|&window| PairedWindow::of(window)).collect();
        lines[index].cells.push(Cell {
            size: point.size_bytes,
            rate_interval: interval(&rounds, |window| window.rate_per_s),
            p50_interval: interval(&rounds, |window| window.p50_ns),
            windows: rounds,
            rate_per_s: measured.rate_per_s,
            bytes_per_s: measured.rate_per_s * point.size_bytes.0 as f64,
            latency: measured.latency_ns,
            pace: measured.pace_ns,
            is_limited: measured.is_client_limit(),
            spikes: measured.spikes,
            share_of_socket: None,
        });
    }
    for line in &mut lines {
        line.cells.sort_by_key(|cell| cell.size);
    }
    lines.sort_by_key(|line| (line.kind, line.transport));
    // Bare sockets are the calls' reference: without calls they tell nothing.
    if !lines.iter().any(|line| matches!(line.kind.work, Work::Call(_))) {
        lines.clear();
    }
    let analysis = Analysis { lines, noise: Noise::of(&results.aa) };
    analysis.clone().with_shares(&analysis)
}

impl Analysis {
    /// Lines of gRPC calls.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| matches!(line.kind.work, Work::Call(_)))
    }

    /// Every point of every line of calls.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (&Line, &Cell)> {
        self.calls().flat_map(|line| line.cells.iter().map(move |cell| (line, cell)))
    }

    /// Every size that some line has, ascending.
    pub(crate) fn sizes(&self) -> Vec<ByteSize> {
        let mut sizes: Vec<_> =
            self.lines.iter().flat_map(|line| line.cells.iter().map(|cell| cell.size)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Every transport that some line has.
    pub(crate) fn transports(&self) -> Vec<Transport> {
        Transport::ALL
            .into_iter()
            .filter(|&transport| self.lines.iter().any(|l| l.transport == transport))
            .collect()
    }

    /// The kinds of the lines, each once.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let mut kinds: Vec<_> = self.lines.iter().map(|line| line.kind).collect();
        kinds.dedup();
        kinds
    }

    /// The line of this kind and transport.
    pub(crate) fn line(&self, kind: Kind, transport: Transport) -> Option<&Line> {
        self.lines.iter().find(|line| (line.kind, line.transport) == (kind, transport))
    }

    /// The bare socket's line beside this kind: of the same pattern, with as many in flight, or else with the
    /// most.
    pub(crate) fn reference_of(&self, kind: Kind, transport: Transport) -> Option<&Line> {
        let Work::Call(call) = kind.work else { return None };
        let work = Work::Socket(Pattern::of(call));
        let references = || self.lines.iter().filter(|l| (l.kind.work, l.transport) == (work, transport));
        let same = (call == CallType::Unary)
            .then(|| references().find(|reference| reference.kind.in_flight == kind.in_flight))
            .flatten();
        same.or_else(|| references().max_by_key(|reference| reference.kind.in_flight))
    }

    /// The same without cells of which too few windows are valid for a claim: fewer than an interval needs, and not
    /// all.
    pub(crate) fn sure(&self) -> Self {
        let mut sure = self.clone();
        for line in &mut sure.lines {
            line.cells.retain(|cell| cell.rate_interval.is_some() || excluded(&cell.windows) == 0);
        }
        sure.lines.retain(|line| !line.cells.is_empty());
        sure
    }

    fn with_shares(mut self, all: &Self) -> Self {
        for line in &mut self.lines {
            let Some(reference) = all.reference_of(line.kind, line.transport) else { continue };
            for cell in &mut line.cells {
                let most =
                    reference.at(cell.size).map(|reference| reference.rate_per_s).filter(|&rate| rate > 0.0);
                cell.share_of_socket = most.map(|most| cell.rate_per_s / most);
            }
        }
        self
    }
}

impl Cell {
    /// The median latency of this cell beside that of another, from windows of the same rounds.
    pub(crate) fn median_beside(&self, other: &Self, floor: f64) -> Compared {
        Compared::new(ratio(&self.windows, &other.windows, |it| it.p50_ns), floor, Better::Less)
    }

    /// The median latency.
    pub(crate) fn p50_ns(&self) -> Option<u64> {
        Some(self.latency?.p50)
    }

    /// What a long wait is compared with: the median latency, or the mean time between two readings of the clock.
    pub(crate) fn typical_ns(&self) -> Option<f64> {
        self.p50_ns().map(|p50_ns| p50_ns as f64).or(self.pace.map(Pace::between_readings_ns))
    }
}

impl Line {
    /// What was measured at this size.
    pub(crate) fn at(&self, size: ByteSize) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.size == size)
    }

    /// The size of most bytes per second.
    pub(crate) fn best_throughput(&self) -> Option<&Cell> {
        self.cells
            .iter()
            .filter(|c| c.bytes_per_s > 0.0)
            .max_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
    }

    /// The size of most operations per second.
    pub(crate) fn best_rate(&self) -> Option<&Cell> {
        self.cells.iter().max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))
    }

    /// Where the median latency is flat, counted from the smallest size. The plateau ends behind the *last* size
    /// that is on it, so that one disturbed point in its midst does not end it. `None` with fewer than three sizes.
    pub(crate) fn plateau(&self) -> Option<Plateau> {
        let medians: Vec<u64> = self.cells.iter().map(Cell::p50_ns).collect::<Option<_>>()?;
        let mut smallest = medians.get(..PLATEAU_SIZES)?.to_vec();
        smallest.sort_unstable();
        let level_ns = smallest[PLATEAU_SIZES / 2];
        let last = medians.iter().rposition(|&p50_ns| p50_ns as f64 <= PLATEAU_FACTOR * level_ns as f64)?;
        let leaves = self.cells.get(last + 1).and_then(|cell| Some((cell.size, cell.p50_ns()?)));
        Some(Plateau { level_ns, last: self.cells[last].size, leaves })
    }
}

#[cfg(test)]
mod tests;
