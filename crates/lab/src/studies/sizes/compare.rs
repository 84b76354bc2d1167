//! Comparison of stacks: ratios of windows from the same round, with intervals and verdicts. Pure.
//!
//! **Pairing.** In each round every pair of a cell has a window. Round 0 takes the pairs in order, round 1 in reverse,
//! and so on (ABBA). Our window and theirs of the same round are close in time, and each comes first equally often. A
//! round in which either is missing or not [valid](crate::load::PointResult::validity) is excluded and counted.
//!
//! **Direction.** A ratio is always ours ÷ theirs. For rates, above 1 means that ours is faster; for latencies, below
//! 1 does. [`Verdict`] states which is faster.

pub(crate) mod findings;

use std::collections::BTreeSet;

use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::{Interval, Ratio, geometric_mean, median};

use super::lines::SizesLines;
use crate::load::gathered::{MergedCell, distinct};
use crate::load::noise::Noise;
use crate::load::paired::{CellKey, cell_key};
use crate::load::verdict::{Better, JudgedRatio, Verdict};
use crate::load::{Kind, Transport};
use crate::stack::Pair;

/// Results of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StacksCompared<'r> {
    /// The [reference](LabResults::reference) of all comparisons: our client with our server, our client with the
    /// server of all clients, or the client of all servers with our server.
    pub(crate) ours: Pair,
    /// Other stacks with both their own ends, in the order of measuring. If the reference has two stacks, all other
    /// pairs.
    pub(crate) peers: Vec<Pair>,
    /// Pairs of client and server from different stacks, in the order of measuring.
    pub(crate) mixed: Vec<Pair>,
    pub(crate) noise: Noise,
    /// Cells by kind, transport and size.
    pub(crate) cells: Vec<ComparedCell<'r>>,
}

/// One kind of work at one size over one transport, for all pairs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ComparedCell<'r> {
    pub(crate) kind: Kind,
    pub(crate) transport: Transport,
    /// Payload bytes of a message.
    pub(crate) size: ByteSize,
    /// Windows of our pair.
    pub(crate) ours: MergedCell<'r>,
    /// Bare socket moving the same bytes.
    pub(crate) reference: Option<Reference>,
    /// Other pairs: [`StacksCompared::peers`], then [`StacksCompared::mixed`].
    pub(crate) against: Vec<Against<'r>>,
}

/// Comparison of our pair with another in a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Against<'r> {
    /// The other pair.
    pub(crate) pair: Pair,
    /// Windows of the other pair.
    pub(crate) theirs: MergedCell<'r>,
    /// Operations per second, ours ÷ theirs; higher is better.
    pub(crate) rate: JudgedRatio,
    /// Median latencies of lone calls, ours ÷ theirs; lower is better. `None` for other kinds, where latency depends
    /// on the number in flight.
    pub(crate) median: Option<JudgedRatio>,
    /// Gain from replacing one end with ours: this pair's operations per second ÷ those of the other stack's own pair.
    /// `None` unless one end is ours.
    pub(crate) replaced: Option<JudgedRatio>,
}

/// Bare socket in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reference {
    pub(crate) rate_per_s: f64,
    /// Our rate ÷ the socket's, over rounds that have both, or else over all rounds.
    pub(crate) share: Ratio,
}

/// A peer, and its pairs with one end replaced by ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ends<'a> {
    /// The peer's own pair.
    pub(crate) both: &'a Pair,
    /// Our client with its server.
    pub(crate) client: &'a Pair,
    /// Its client with our server.
    pub(crate) server: &'a Pair,
}

impl Ends<'_> {
    /// Returns the gain of replacing both ends, the client, and the server in a cell.
    pub(crate) fn gains(self, cell: &ComparedCell<'_>) -> [Option<JudgedRatio>; 3] {
        let one = |pair| cell.against(pair)?.replaced;
        [cell.against(self.both).map(|against| against.rate), one(self.client), one(self.server)]
    }
}

/// Number of cells by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) faster: usize,
    pub(crate) no_difference: usize,
    pub(crate) slower: usize,
    pub(crate) cannot_tell: usize,
    pub(crate) not_measured: usize,
}

/// Ratios of one pair to ours, summarized over sizes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aggregate {
    /// The other pair.
    pub(crate) pair: Pair,
    pub(crate) kind: Kind,
    pub(crate) transport: Transport,
    /// Verdicts of its sizes.
    pub(crate) tally: Tally,
    /// Geometric mean of the sizes' ratios.
    pub(crate) mean: f64,
    /// Confidence interval of the mean for these sizes only. `None` if a size has no interval, or if each stack is
    /// faster at some size, because such a mean describes neither.
    pub(crate) interval: Option<Interval>,
    /// Size with the largest ratio.
    pub(crate) most: (ByteSize, Ratio),
    /// Size with the smallest ratio.
    pub(crate) least: (ByteSize, Ratio),
}

impl<'r> StacksCompared<'r> {
    /// Compares every pair of the study with `ours`. `cells`: all cells of the study.
    pub(crate) fn of(ours: Pair, cells: &[MergedCell<'r>], lines: &SizesLines<'r>) -> Self {
        let others = distinct(cells.iter().filter_map(|cell| cell.pair).filter(|pair| **pair != ours));
        let is_peer = |pair: &Pair| pair.client == pair.server || ours.client != ours.server;
        let (peers, mixed): (Vec<Pair>, Vec<Pair>) = others.into_iter().cloned().partition(is_peer);
        // Keys of calls, in the order of reports.
        let calls = cells.iter().filter(|cell| cell.pair.is_some());
        let keys: BTreeSet<CellKey> = calls.map(|cell| cell_key(cell.point)).collect();
        let pairs: Vec<&Pair> = peers.iter().chain(&mixed).collect();
        let compared = keys.into_iter().map(|key| {
            let here = cells.iter().filter(|cell| cell_key(cell.point) == key).collect();
            CellInput { key, here, lines }.compared(&ours, &pairs)
        });
        let cells = compared.collect();
        Self { ours, peers, mixed, noise: lines.noise.clone(), cells }
    }

    /// Returns cells of this kind and transport, by size.
    pub(crate) fn line(&self, kind: Kind, transport: Transport) -> impl Iterator<Item = &ComparedCell<'r>> {
        self.cells.iter().filter(move |cell| (cell.kind, cell.transport) == (kind, transport))
    }

    /// Returns each peer that also has pairs with one end replaced by ours. Empty for other pairings.
    pub(crate) fn ends(&self) -> Vec<Ends<'_>> {
        let replaced = |peer: &Pair, is_it: fn(&Pair, &Pair) -> bool| {
            let has_ours = |pair: &&Pair| pair.client.is_ours() != pair.server.is_ours();
            self.mixed.iter().filter(has_ours).find(|pair| is_it(pair, peer))
        };
        let ends = |peer| {
            let client = replaced(peer, |pair, peer| pair.server == peer.server)?;
            let server = replaced(peer, |pair, peer| pair.client == peer.client)?;
            Some(Ends { both: peer, client, server })
        };
        self.peers.iter().filter_map(ends).collect()
    }

    /// Returns every measured kind and transport, in the order of reports.
    pub(crate) fn lines(&self) -> Vec<(Kind, Transport)> {
        distinct(self.cells.iter().map(|cell| (cell.kind, cell.transport)))
    }

    /// Returns every measured size, ascending.
    pub(crate) fn sizes(&self) -> Vec<ByteSize> {
        self.cells.iter().map(|cell| cell.size).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the verdicts on this pair's rates.
    pub(crate) fn tally(&self, pair: &Pair) -> Tally {
        self.against(pair).map(|(_, against)| against.rate.verdict).collect()
    }

    /// Returns whether some cell has a conclusive verdict.
    pub(crate) fn is_conclusive(&self) -> bool {
        let all: Tally =
            self.cells.iter().flat_map(|cell| &cell.against).map(|against| against.rate.verdict).collect();
        all.faster + all.no_difference + all.slower > 0
    }

    /// Returns the median ratio of rates over cells.
    pub(crate) fn median_ratio(&self, pair: &Pair) -> Option<f64> {
        median(self.against(pair).filter_map(|(_, against)| Some(against.rate.ratio?.ratio)))
    }

    /// Returns the results of this pair, with their cells.
    pub(crate) fn against<'a>(
        &'a self,
        pair: &'a Pair,
    ) -> impl Iterator<Item = (&'a ComparedCell<'r>, &'a Against<'r>)> {
        self.cells.iter().filter_map(move |cell| Some((cell, cell.against(pair)?)))
    }

    /// Returns the summary over sizes for each pair, kind and transport with a ratio.
    pub(crate) fn aggregates(&self) -> Vec<Aggregate> {
        let lines = self.lines();
        let pairs = self.peers.iter().chain(&self.mixed);
        pairs
            .flat_map(|pair| {
                lines.iter().filter_map(move |&(kind, transport)| self.aggregate(pair, kind, transport))
            })
            .collect()
    }

    fn aggregate(&self, pair: &Pair, kind: Kind, transport: Transport) -> Option<Aggregate> {
        let compared: Vec<(ByteSize, JudgedRatio)> = self
            .line(kind, transport)
            .filter_map(|cell| Some((cell.size, cell.against(pair)?.rate)))
            .collect();
        let ratios: Vec<(ByteSize, Ratio)> =
            compared.iter().filter_map(|&(size, compared)| Some((size, compared.ratio?))).collect();
        let by_ratio = |(_, a): &&(ByteSize, Ratio), (_, b): &&(ByteSize, Ratio)| a.ratio.total_cmp(&b.ratio);
        let mean = geometric_mean(ratios.iter().map(|(_, ratio)| ratio.ratio));
        let tally: Tally = compared.iter().map(|(_, compared)| compared.verdict).collect();
        Some(Aggregate {
            pair: pair.clone(),
            kind,
            transport,
            tally,
            mean,
            interval: (tally.faster == 0 || tally.slower == 0)
                .then(|| interval_of_mean(mean, &ratios))
                .flatten(),
            most: *ratios.iter().max_by(by_ratio)?,
            least: *ratios.iter().min_by(by_ratio)?,
        })
    }
}

impl<'r> ComparedCell<'r> {
    /// Returns the comparison with this pair.
    pub(crate) fn against(&self, pair: &Pair) -> Option<&Against<'r>> {
        self.against.iter().find(|against| against.pair == *pair)
    }
}

impl FromIterator<Verdict> for Tally {
    fn from_iter<I: IntoIterator<Item = Verdict>>(verdicts: I) -> Self {
        let mut tally = Self::default();
        for verdict in verdicts {
            *match verdict {
                Verdict::Faster => &mut tally.faster,
                Verdict::NoDifference => &mut tally.no_difference,
                Verdict::Slower => &mut tally.slower,
                Verdict::CannotTell => &mut tally.cannot_tell,
                Verdict::NotMeasured => &mut tally.not_measured,
            } += 1;
        }
        tally
    }
}

impl Tally {
    /// Returns the number of measured cells.
    pub(crate) fn measured(self) -> usize {
        self.faster + self.no_difference + self.slower + self.cannot_tell
    }
}

/// A cell's windows of all pairs, before comparison.
struct CellInput<'a, 'r> {
    key: CellKey,
    here: Vec<&'a MergedCell<'r>>,
    /// Lines with the bare sockets.
    lines: &'a SizesLines<'r>,
}

impl<'r> CellInput<'_, 'r> {
    fn compared(&self, ours: &Pair, pairs: &[&Pair]) -> ComparedCell<'r> {
        let (kind, transport, size) = self.key;
        // A pair that was not measured here has no windows.
        let ours =
            self.of(ours).cloned().unwrap_or_else(|| MergedCell::of(self.here[0].point, None, Vec::new()));
        ComparedCell {
            against: pairs.iter().filter_map(|pair| self.against(pair, &ours)).collect(),
            reference: self.reference(&ours),
            kind,
            transport,
            size,
            ours,
        }
    }

    fn against(&self, pair: &Pair, ours: &MergedCell<'r>) -> Option<Against<'r>> {
        let theirs = self.of(pair)?;
        let (kind, ..) = self.key;
        let noise = &self.lines.noise;
        let floor = noise.rate(kind);
        let replaced = replaced(pair).map(|own| match self.of(&own) {
            Some(own) => theirs.compare_rate(own, floor),
            None => JudgedRatio::new(None, floor, Better::More),
        });
        Some(Against {
            pair: pair.clone(),
            rate: ours.compare_rate(theirs, floor),
            median: (kind == Kind::LONE_CALL).then(|| ours.compare_median(theirs, noise.median(kind))),
            replaced,
            theirs: theirs.clone(),
        })
    }

    fn reference(&self, ours: &MergedCell<'r>) -> Option<Reference> {
        let socket = self.lines.socket_reference(ours.point)?;
        let rate_per_s = socket.rate_per_s();
        let of_all = || Some(ours.rate()? / rate_per_s);
        let share = ours
            .ratio_to(socket, |it| it.rate_per_s)
            .or_else(|| Some(Ratio { ratio: of_all()?, interval: None, pairs: 0 }));
        share.filter(|_| rate_per_s > 0.0).map(|share| Reference { rate_per_s, share })
    }

    fn of(&self, pair: &Pair) -> Option<&MergedCell<'r>> {
        self.here.iter().copied().find(|cell| cell.pair == Some(pair))
    }
}

/// Returns the stack's own pair that `pair` derives from by replacing one end with ours.
fn replaced(pair: &Pair) -> Option<Pair> {
    match (pair.client.is_ours(), pair.server.is_ours()) {
        (true, false) => Some(Pair::own(pair.server.clone())),
        (false, true) => Some(Pair::own(pair.client.clone())),
        _ => None,
    }
}

/// Returns the interval of the mean. Sizes are independent measurements, so the half widths of their intervals add as
/// squares.
fn interval_of_mean(mean: f64, ratios: &[(ByteSize, Ratio)]) -> Option<Interval> {
    let mut squares = 0.0;
    for (_, ratio) in ratios {
        squares += ratio.interval?.half_width().powi(2);
    }
    let reach = squares.sqrt() / ratios.len() as f64;
    Some(Interval { low: mean * (-reach).exp(), high: mean * reach.exp() })
}

#[cfg(test)]
pub(crate) mod tests;
