//! What our own pair and the bare sockets did, as lines over message sizes. Pure: results in, lines out.

use std::collections::BTreeSet;

use thalweg_measure::size::ByteSize;

use crate::load::gathered::{Windows, distinct, grouped};
use crate::load::noise::Noise;
use crate::load::paired::is_call;
use crate::load::{Kind, LabResults, Pattern, Point, Transport, Work};
use crate::record::CallType;

/// A median latency above this many times the plateau's has left it.
pub(crate) const PLATEAU_FACTOR: f64 = 1.5;
/// The plateau's height is the median over this many of the smallest sizes.
const PLATEAU_SIZES: usize = 3;

/// The lines of a study's plots, and what can be said of each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SizesLines<'r> {
    /// Calls first, then the sockets; of each, one transport after the other.
    pub(crate) lines: Vec<SizesLine<'r>>,
    /// How small a difference the study can see.
    pub(crate) noise: Noise,
}

/// One way of moving messages, over sizes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SizesLine<'r> {
    /// What it is.
    pub(crate) kind: Kind,
    /// What carries it.
    pub(crate) transport: Transport,
    /// What was measured, by size, ascending. Sizes at which nothing succeeded are missing.
    pub(crate) cells: Vec<Windows<'r>>,
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

impl<'r> SizesLines<'r> {
    /// Arranges what the [reference](LabResults::reference) pair and the bare sockets did as lines.
    pub(crate) fn of(results: &LabResults, own: &[Windows<'r>]) -> Self {
        Self { lines: Self::arranged(own), noise: Noise::of(&results.aa) }
    }

    /// Calls first, then the sockets.
    pub(super) fn arranged(own: &[Windows<'r>]) -> Vec<SizesLine<'r>> {
        let measured = own.iter().filter(|cell| cell.merged().is_some()).cloned();
        let of_line = |cell: &Windows<'_>| (Kind::of(cell.point), cell.point.transport);
        let line = |((kind, transport), mut cells): (_, Vec<Windows<'r>>)| {
            cells.sort_by_key(Windows::size);
            SizesLine { kind, transport, cells }
        };
        let mut lines: Vec<SizesLine<'r>> = grouped(measured, of_line).into_iter().map(line).collect();
        lines.sort_by_key(|line| (line.kind, line.transport));
        // Bare sockets are the calls' reference: without calls they tell nothing.
        if !lines.iter().any(|line| is_call(line.kind)) {
            lines.clear();
        }
        lines
    }

    /// Lines of gRPC calls.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &SizesLine<'r>> {
        self.lines.iter().filter(|line| is_call(line.kind))
    }

    /// Every point of every line of calls.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Windows<'r>> {
        self.calls().flat_map(|line| &line.cells)
    }

    /// Every size that some line has, ascending.
    pub(crate) fn sizes(&self) -> Vec<ByteSize> {
        let sizes: BTreeSet<_> = self.lines.iter().flat_map(|line| &line.cells).map(Windows::size).collect();
        sizes.into_iter().collect()
    }

    /// Every transport that some line has.
    pub(crate) fn transports(&self) -> Vec<Transport> {
        let is_there = |transport: &Transport| self.lines.iter().any(|line| line.transport == *transport);
        Transport::ALL.into_iter().filter(is_there).collect()
    }

    /// The kinds of the lines, each once.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        distinct(self.lines.iter().map(|line| line.kind))
    }

    /// The line of this kind and transport.
    pub(crate) fn line(&self, kind: Kind, transport: Transport) -> Option<&SizesLine<'r>> {
        self.lines.iter().find(|line| (line.kind, line.transport) == (kind, transport))
    }

    /// The bare socket's line beside this kind: of the same pattern, with as many in flight, or else with the
    /// most.
    pub(crate) fn reference_of(&self, kind: Kind, transport: Transport) -> Option<&SizesLine<'r>> {
        let Work::Call(call) = kind.work else { return None };
        let work = Work::Socket(Pattern::of(call));
        let references = || self.lines.iter().filter(|l| (l.kind.work, l.transport) == (work, transport));
        let same = (call == CallType::Unary)
            .then(|| references().find(|reference| reference.kind.in_flight == kind.in_flight))
            .flatten();
        same.or_else(|| references().max_by_key(|reference| reference.kind.in_flight))
    }

    /// A cell's rate, divided by the bare socket's at the same size and transport. `None` for the socket itself.
    pub(crate) fn share_of_socket(&self, cell: &Windows<'_>) -> Option<f64> {
        let most = self.socket_beside(cell.point)?.rate_per_s();
        cell.rate().filter(|_| most > 0.0).map(|rate| rate / most)
    }

    /// What the bare socket did at the same size and transport.
    pub(crate) fn socket_beside(&self, point: &Point) -> Option<&Windows<'r>> {
        self.reference_of(Kind::of(point), point.transport)?.at(point.size_bytes)
    }

    /// The same without cells of which too few windows are valid for a claim.
    pub(crate) fn sure(&self) -> Self {
        let mut sure = self.clone();
        for line in &mut sure.lines {
            line.cells.retain(Windows::is_sure);
        }
        sure.lines.retain(|line| !line.cells.is_empty());
        sure
    }
}

impl<'r> SizesLine<'r> {
    /// What was measured at this size.
    pub(crate) fn at(&self, size: ByteSize) -> Option<&Windows<'r>> {
        self.cells.iter().find(|cell| cell.size() == size)
    }

    /// Where the median latency is flat, counted from the smallest size. The plateau ends behind the *last* size
    /// that is on it, so that one disturbed point in its midst does not end it. `None` with fewer than three sizes.
    pub(crate) fn plateau(&self) -> Option<Plateau> {
        let medians: Vec<u64> = self.cells.iter().map(Windows::p50_ns).collect::<Option<_>>()?;
        let mut smallest = medians.get(..PLATEAU_SIZES)?.to_vec();
        smallest.sort_unstable();
        let level_ns = smallest[PLATEAU_SIZES / 2];
        let last = medians.iter().rposition(|&p50_ns| p50_ns as f64 <= PLATEAU_FACTOR * level_ns as f64)?;
        let leaves = self.cells.get(last + 1).and_then(|cell| Some((cell.size(), cell.p50_ns()?)));
        Some(Plateau { level_ns, last: self.cells[last].size(), leaves })
    }
}

#[cfg(test)]
mod tests;
