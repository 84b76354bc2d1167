//! Results of our own pair and of bare sockets as lines over message sizes. Pure.

use std::collections::BTreeSet;

use thalweg_measure::size::ByteSize;

use crate::load::gathered::{MergedCell, distinct, grouped};
use crate::load::noise::Noise;
use crate::load::paired::is_compared;
use crate::load::{Kind, LabResults, Pattern, Point, Transport, Work};
use crate::record::CallType;

/// Factor over the plateau's latency above which a size is no longer on the plateau.
pub(crate) const PLATEAU_FACTOR: f64 = 1.5;
/// Number of smallest sizes whose median is the plateau's level.
const PLATEAU_SIZES: usize = 3;

/// Lines of a study's plots.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SizesLines<'r> {
    /// Lines of calls, then of sockets; each by transport.
    pub(crate) lines: Vec<SizesLine<'r>>,
    pub(crate) noise: Noise,
}

/// One kind of work over message sizes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SizesLine<'r> {
    pub(crate) kind: Kind,
    pub(crate) transport: Transport,
    /// Cells by ascending size. Sizes without a success are missing.
    pub(crate) cells: Vec<MergedCell<'r>>,
}

/// Range of sizes with flat latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plateau {
    /// Median latency of the plateau, ns.
    pub(crate) level_ns: u64,
    /// The largest size on the plateau.
    pub(crate) last: ByteSize,
    /// First size beyond it and its median latency in ns; `None` if every size is on the plateau.
    pub(crate) leaves: Option<(ByteSize, u64)>,
}

impl<'r> SizesLines<'r> {
    /// Arranges the windows of the [reference](LabResults::reference) pair and of bare sockets as lines.
    pub(crate) fn of(results: &LabResults, own: &[MergedCell<'r>]) -> Self {
        Self { lines: Self::arranged(own), noise: Noise::of(&results.aa) }
    }

    /// Returns lines of calls, then of sockets.
    pub(super) fn arranged(own: &[MergedCell<'r>]) -> Vec<SizesLine<'r>> {
        let measured = own.iter().filter(|cell| cell.merged().is_some()).cloned();
        let of_line = |cell: &MergedCell<'_>| (Kind::of(cell.point), cell.point.transport);
        let line = |((kind, transport), mut cells): (_, Vec<MergedCell<'r>>)| {
            cells.sort_by_key(MergedCell::size);
            SizesLine { kind, transport, cells }
        };
        let mut lines: Vec<SizesLine<'r>> = grouped(measured, of_line).into_iter().map(line).collect();
        lines.sort_by_key(|line| (line.kind, line.transport));
        // Bare sockets are a reference for calls, so they mean nothing alone.
        if !lines.iter().any(|line| is_compared(line.kind)) {
            lines.clear();
        }
        lines
    }

    /// Returns the lines of gRPC calls.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &SizesLine<'r>> {
        self.lines.iter().filter(|line| is_compared(line.kind))
    }

    /// Returns every cell of a call.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &MergedCell<'r>> {
        self.calls().flat_map(|line| &line.cells)
    }

    /// Returns every size of any line, ascending.
    pub(crate) fn sizes(&self) -> Vec<ByteSize> {
        let sizes: BTreeSet<_> =
            self.lines.iter().flat_map(|line| &line.cells).map(MergedCell::size).collect();
        sizes.into_iter().collect()
    }

    /// Returns every transport of any line.
    pub(crate) fn transports(&self) -> Vec<Transport> {
        let is_there = |transport: &Transport| self.lines.iter().any(|line| line.transport == *transport);
        Transport::ALL.into_iter().filter(is_there).collect()
    }

    /// Returns the distinct kinds of the lines.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        distinct(self.lines.iter().map(|line| line.kind))
    }

    /// Returns the line of this kind and transport.
    pub(crate) fn line(&self, kind: Kind, transport: Transport) -> Option<&SizesLine<'r>> {
        self.lines.iter().find(|line| (line.kind, line.transport) == (kind, transport))
    }

    /// Returns the bare socket's line for comparison with this kind. It has the same pattern, and the same number in
    /// flight or else the largest.
    pub(crate) fn reference_of(&self, kind: Kind, transport: Transport) -> Option<&SizesLine<'r>> {
        let Work::Call(call) = kind.work else { return None };
        let work = Work::Socket(Pattern::of(call));
        let references = || self.lines.iter().filter(|l| (l.kind.work, l.transport) == (work, transport));
        let same = (call == CallType::Unary)
            .then(|| references().find(|reference| reference.kind.in_flight == kind.in_flight))
            .flatten();
        same.or_else(|| references().max_by_key(|reference| reference.kind.in_flight))
    }

    /// Returns a cell's rate divided by the bare socket's at the same size and transport. `None` for the socket.
    pub(crate) fn share_of_socket(&self, cell: &MergedCell<'_>) -> Option<f64> {
        let most = self.socket_reference(cell.point)?.rate_per_s();
        cell.rate().filter(|_| most > 0.0).map(|rate| rate / most)
    }

    /// Returns the bare socket's cell at the same size and transport.
    pub(crate) fn socket_reference(&self, point: &Point) -> Option<&MergedCell<'r>> {
        self.reference_of(Kind::of(point), point.transport)?.at(point.size_bytes)
    }

    /// Returns the lines without cells that have too few valid windows for a claim.
    pub(crate) fn with_enough_windows(&self) -> Self {
        let mut sure = self.clone();
        for line in &mut sure.lines {
            line.cells.retain(MergedCell::has_enough_windows);
        }
        sure.lines.retain(|line| !line.cells.is_empty());
        sure
    }
}

impl<'r> SizesLine<'r> {
    /// Returns the cell of this size.
    pub(crate) fn at(&self, size: ByteSize) -> Option<&MergedCell<'r>> {
        self.cells.iter().find(|cell| cell.size() == size)
    }

    /// Returns the plateau of the median latency, which starts at the smallest size. It ends after the *last* size on
    /// it, so that one disturbed point in between does not end it. `None` with fewer than three sizes.
    pub(crate) fn plateau(&self) -> Option<Plateau> {
        let medians: Vec<u64> = self.cells.iter().map(MergedCell::p50_ns).collect::<Option<_>>()?;
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
