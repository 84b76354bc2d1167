//! Stacks against one another: ratios of what was measured in the same round, how sure they are, and what can be called
//! a difference. Pure.
//!
//! **Pairing.** In each round every pair of a cell has a window; round 0 goes through the pairs in order, round 1 back,
//! and so on (ABBA). Our window and theirs of the same round are a pair of measurements: they are as close in time as
//! the interleaving makes them, and each comes first as often as the other. A round in which one of the two is missing
//! or not [valid](crate::load::PointResult::validity) makes no pair, and is counted.
//!
//! **Direction.** A ratio is always ours ÷ theirs. Of rates more is better, so above 1 ours is faster; of latencies
//! less is better, so below 1 ours is faster. [`Verdict`] says which it is.

pub(crate) mod findings;

use std::collections::BTreeSet;

use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::{Interval, Ratio, geometric_mean, median};

use super::lines::SizesLines;
use crate::load::gathered::{Windows, distinct};
use crate::load::noise::Noise;
use crate::load::paired::{CellKey, at};
use crate::load::verdict::{Better, Compared, Verdict};
use crate::load::{Kind, Transport};
use crate::stack::Pair;

/// What a comparing study found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StacksCompared<'r> {
    /// The [reference](LabResults::reference), with which all others are compared: our client at our server, or our
    /// client at the server that all clients meet, or our server as the client that meets all servers finds it.
    pub(crate) ours: Pair,
    /// Other stacks, each with its own client at its own server, in the order of measuring. Where the reference is a
    /// pair of two stacks, all other pairs.
    pub(crate) peers: Vec<Pair>,
    /// Other pairs of a client and a server of different stacks, in the order of measuring.
    pub(crate) mixed: Vec<Pair>,
    /// How small a difference the study can see.
    pub(crate) noise: Noise,
    /// By kind, transport and size.
    pub(crate) cells: Vec<ComparedCell<'r>>,
}

/// One kind of work at one size over one transport, of all pairs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ComparedCell<'r> {
    /// What was measured.
    pub(crate) kind: Kind,
    /// What carried it.
    pub(crate) transport: Transport,
    /// Payload bytes of a message.
    pub(crate) size: ByteSize,
    /// What our pair did.
    pub(crate) ours: Windows<'r>,
    /// What a bare socket did with the same bytes.
    pub(crate) reference: Option<Reference>,
    /// The other pairs: [`StacksCompared::peers`], then [`StacksCompared::mixed`].
    pub(crate) against: Vec<Against<'r>>,
}

/// Another pair in a cell, beside ours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Against<'r> {
    /// Which.
    pub(crate) pair: Pair,
    /// What it did.
    pub(crate) theirs: Windows<'r>,
    /// Operations per second, ours ÷ theirs: more is better.
    pub(crate) rate: Compared,
    /// Median latencies of lone calls, ours ÷ theirs: less is better. `None` for all other kinds: where calls overlap
    /// or messages are pipelined, latency follows from how much is under way.
    pub(crate) median: Option<Compared>,
    /// Of a pair with one end ours: its operations per second ÷ those of the other stack's own pair, which is what
    /// replacing that end by ours gains. `None` of all other pairs.
    pub(crate) replaced: Option<Compared>,
}

/// What a bare socket did in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reference {
    /// Operations per second.
    pub(crate) rate_per_s: f64,
    /// Our rate ÷ the socket's, over the rounds that have both, or else from all of both.
    pub(crate) share: Ratio,
}

/// A peer, and what became of it with one end ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ends<'a> {
    /// Its own pair, of which ours replaces both ends.
    pub(crate) both: &'a Pair,
    /// Our client at its server.
    pub(crate) client: &'a Pair,
    /// Its client at our server.
    pub(crate) server: &'a Pair,
}

impl Ends<'_> {
    /// What each replacement gains in a cell: both ends, the client, the server.
    pub(crate) fn gains(self, cell: &ComparedCell<'_>) -> [Option<Compared>; 3] {
        let one = |pair| cell.against(pair)?.replaced;
        [cell.against(self.both).map(|against| against.rate), one(self.client), one(self.server)]
    }
}

/// How many cells have which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) faster: usize,
    pub(crate) no_difference: usize,
    pub(crate) slower: usize,
    pub(crate) cannot_tell: usize,
    pub(crate) not_measured: usize,
}

/// The rates of one pair over sizes, beside ours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aggregate {
    /// Against whom.
    pub(crate) pair: Pair,
    /// What was measured.
    pub(crate) kind: Kind,
    /// What carried it.
    pub(crate) transport: Transport,
    /// Of its sizes.
    pub(crate) tally: Tally,
    /// The geometric mean of the sizes' ratios.
    pub(crate) mean: f64,
    /// How sure the mean is, of these very sizes: it says nothing of others. `None` where a size has no interval, and
    /// where ours is faster at one size and theirs at another, because such a mean describes neither.
    pub(crate) interval: Option<Interval>,
    /// The size with the largest ratio.
    pub(crate) most: (ByteSize, Ratio),
    /// The size with the smallest ratio.
    pub(crate) least: (ByteSize, Ratio),
}

impl<'r> StacksCompared<'r> {
    /// Compares every pair of the study with `ours`. `cells`: all that was measured.
    pub(crate) fn of(ours: Pair, cells: &[Windows<'r>], lines: &SizesLines<'r>) -> Self {
        let others = distinct(cells.iter().filter_map(|cell| cell.pair).filter(|pair| **pair != ours));
        let is_peer = |pair: &Pair| pair.client == pair.server || ours.client != ours.server;
        let (peers, mixed): (Vec<Pair>, Vec<Pair>) = others.into_iter().cloned().partition(is_peer);
        // Where calls were measured, in the order of reports.
        let calls = cells.iter().filter(|cell| cell.pair.is_some());
        let keys: BTreeSet<CellKey> = calls.map(|cell| at(cell.point)).collect();
        let pairs: Vec<&Pair> = peers.iter().chain(&mixed).collect();
        let compared = keys.into_iter().map(|key| {
            let here = cells.iter().filter(|cell| at(cell.point) == key).collect();
            CellInput { key, here, lines }.compared(&ours, &pairs)
        });
        let cells = compared.collect();
        Self { ours, peers, mixed, noise: lines.noise.clone(), cells }
    }

    /// Cells of this kind and transport, by size.
    pub(crate) fn line(&self, kind: Kind, transport: Transport) -> impl Iterator<Item = &ComparedCell<'r>> {
        self.cells.iter().filter(move |cell| (cell.kind, cell.transport) == (kind, transport))
    }

    /// Each peer beside which one of its ends was replaced by ours, with those pairs: our client at its server, its
    /// client at our server. Empty where clients and servers met otherwise.
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

    /// Every kind and transport that was measured, in the order of reports.
    pub(crate) fn lines(&self) -> Vec<(Kind, Transport)> {
        distinct(self.cells.iter().map(|cell| (cell.kind, cell.transport)))
    }

    /// Every size that was measured, ascending.
    pub(crate) fn sizes(&self) -> Vec<ByteSize> {
        self.cells.iter().map(|cell| cell.size).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The verdicts on the rates of this pair.
    pub(crate) fn tally(&self, pair: &Pair) -> Tally {
        self.against(pair).map(|(_, against)| against.rate.verdict).collect()
    }

    /// It is known of some cell whether ours differs from another pair.
    pub(crate) fn is_told(&self) -> bool {
        let all: Tally =
            self.cells.iter().flat_map(|cell| &cell.against).map(|against| against.rate.verdict).collect();
        all.faster + all.no_difference + all.slower > 0
    }

    /// The ratio of rates in the middle: as many cells have a larger as have a smaller one.
    pub(crate) fn middle(&self, pair: &Pair) -> Option<f64> {
        median(self.against(pair).filter_map(|(_, against)| Some(against.rate.ratio?.ratio)))
    }

    /// What was found of this pair, with its cells.
    pub(crate) fn against<'a>(
        &'a self,
        pair: &'a Pair,
    ) -> impl Iterator<Item = (&'a ComparedCell<'r>, &'a Against<'r>)> {
        self.cells.iter().filter_map(move |cell| Some((cell, cell.against(pair)?)))
    }

    /// Each pair, kind and transport of which there is a ratio, over its sizes.
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
        let compared: Vec<(ByteSize, Compared)> = self
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
    /// What was found of this pair.
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
    /// Cells that were measured.
    pub(crate) fn measured(self) -> usize {
        self.faster + self.no_difference + self.slower + self.cannot_tell
    }
}

/// A cell's windows of all pairs, to be compared.
struct CellInput<'a, 'r> {
    key: CellKey,
    here: Vec<&'a Windows<'r>>,
    /// With the bare sockets.
    lines: &'a SizesLines<'r>,
}

impl<'r> CellInput<'_, 'r> {
    fn compared(&self, ours: &Pair, pairs: &[&Pair]) -> ComparedCell<'r> {
        let (kind, transport, size) = self.key;
        // Of a pair that was not measured here there are no windows.
        let ours =
            self.of(ours).cloned().unwrap_or_else(|| Windows::of(self.here[0].point, None, Vec::new()));
        ComparedCell {
            against: pairs.iter().filter_map(|pair| self.against(pair, &ours)).collect(),
            reference: self.reference(&ours),
            kind,
            transport,
            size,
            ours,
        }
    }

    fn against(&self, pair: &Pair, ours: &Windows<'r>) -> Option<Against<'r>> {
        let theirs = self.of(pair)?;
        let (kind, ..) = self.key;
        let noise = &self.lines.noise;
        let floor = noise.rate(kind);
        let replaced = replaced(pair).map(|own| match self.of(&own) {
            Some(own) => theirs.rate_beside(own, floor),
            None => Compared::new(None, floor, Better::More),
        });
        Some(Against {
            pair: pair.clone(),
            rate: ours.rate_beside(theirs, floor),
            median: (kind == Kind::LONE_CALL).then(|| ours.median_beside(theirs, noise.median(kind))),
            replaced,
            theirs: theirs.clone(),
        })
    }

    fn reference(&self, ours: &Windows<'r>) -> Option<Reference> {
        let socket = self.lines.socket_beside(ours.point)?;
        let rate_per_s = socket.rate_per_s();
        let of_all = || Some(ours.rate()? / rate_per_s);
        let share = ours
            .over(socket, |it| it.rate_per_s)
            .or_else(|| Some(Ratio { ratio: of_all()?, interval: None, pairs: 0 }));
        share.filter(|_| rate_per_s > 0.0).map(|share| Reference { rate_per_s, share })
    }

    fn of(&self, pair: &Pair) -> Option<&Windows<'r>> {
        self.here.iter().copied().find(|cell| cell.pair == Some(pair))
    }
}

/// The pair that `pair` was made of, by replacing one end with ours.
fn replaced(pair: &Pair) -> Option<Pair> {
    match (pair.client.is_ours(), pair.server.is_ours()) {
        (true, false) => Some(Pair::own(pair.server.clone())),
        (false, true) => Some(Pair::own(pair.client.clone())),
        _ => None,
    }
}

/// Sizes are independent measurements: the half widths of their intervals add up as squares.
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
