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

use thalweg_measure::distribution::Latency;
use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::{Interval, Ratio, geometric_mean, median};

use super::lines::Analysis;
use crate::load::gathered::{Windows, gathered};
use crate::load::noise::Noise;
use crate::load::paired::{CellKey, PairedWindow, at, excluded, ratio};
use crate::load::used::Used;
use crate::load::verdict::{Better, Compared, Verdict};
use crate::load::{Kind, LabResults, PointResult, Transport};
use crate::stack::Pair;

/// What a comparing study found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comparison {
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
    pub(crate) cells: Vec<ComparedCell>,
}

/// One kind of work at one size over one transport, of all pairs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ComparedCell {
    /// What was measured.
    pub(crate) kind: Kind,
    /// What carried it.
    pub(crate) transport: Transport,
    /// Payload bytes of a message.
    pub(crate) size: ByteSize,
    /// What our pair did.
    pub(crate) ours: Side,
    /// What a bare socket did with the same bytes.
    pub(crate) reference: Option<Reference>,
    /// The other pairs: [`Comparison::peers`], then [`Comparison::mixed`].
    pub(crate) against: Vec<Against>,
}

/// Another pair in a cell, beside ours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Against {
    /// Which.
    pub(crate) pair: Pair,
    /// What it did.
    pub(crate) theirs: Side,
    /// Operations per second, ours ÷ theirs: more is better.
    pub(crate) rate: Compared,
    /// Median latencies of lone calls, ours ÷ theirs: less is better. `None` for all other kinds: where calls overlap
    /// or messages are pipelined, latency follows from how much is under way.
    pub(crate) median: Option<Compared>,
    /// Of a pair with one end ours: its operations per second ÷ those of the other stack's own pair, which is what
    /// replacing that end by ours gains. `None` of all other pairs.
    pub(crate) replaced: Option<Compared>,
}

/// What one pair did in a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Side {
    /// Its windows, in the order of rounds. Empty where it was not measured at all.
    pub(crate) windows: Vec<PairedWindow>,
    /// Operations per second: the geometric mean of the valid windows.
    pub(crate) rate_per_s: Option<f64>,
    /// Of one operation: percentiles are medians of the valid windows' percentiles.
    pub(crate) latency: Option<Latency>,
    /// What an operation costs; `None` where the kernel did not tell.
    pub(crate) cost: Option<Cost>,
}

/// What a bare socket did in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reference {
    /// Operations per second.
    pub(crate) rate_per_s: f64,
    /// Our rate ÷ the socket's, over the rounds that have both, or else from all of both.
    pub(crate) share: Ratio,
}

/// What one operation costs at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    /// In the driver's process.
    pub(crate) client: ProcessCost,
    /// In the server's process.
    pub(crate) server: ProcessCost,
}

/// What one operation costs a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessCost {
    /// What it used in the valid windows.
    pub(crate) used: Used,
    /// System calls, counted in a run of its own; `None` where they were not.
    pub(crate) system_calls: Option<f64>,
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
    pub(crate) fn gains(self, cell: &ComparedCell) -> [Option<Compared>; 3] {
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

/// Compares every pair of the study with ours.
pub(crate) fn compare(results: &LabResults, references: &Analysis) -> Comparison {
    let ours = results.reference();
    let gathered = gathered(&results.points);
    let others = distinct(gathered.iter().filter_map(|windows| windows.pair).filter(|pair| **pair != ours));
    let is_peer = |pair: &Pair| pair.client == pair.server || ours.client != ours.server;
    let (peers, mixed): (Vec<_>, Vec<_>) = others.into_iter().partition(is_peer);
    let noise = Noise::of(&results.aa);
    let study = Study { results, ours: &ours, gathered, references, noise: &noise };
    let pairs: Vec<&Pair> = peers.iter().chain(&mixed).collect();
    let cells = study.keys().into_iter().map(|key| study.cell(key, &pairs)).collect();
    Comparison { ours, peers, mixed, noise, cells }
}

impl Comparison {
    /// Cells of this kind and transport, by size.
    pub(crate) fn line(&self, kind: Kind, transport: Transport) -> impl Iterator<Item = &ComparedCell> {
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
        let mut lines: Vec<_> = self.cells.iter().map(|cell| (cell.kind, cell.transport)).collect();
        lines.dedup();
        lines
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
    ) -> impl Iterator<Item = (&'a ComparedCell, &'a Against)> {
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

impl ComparedCell {
    /// What was found of this pair.
    pub(crate) fn against(&self, pair: &Pair) -> Option<&Against> {
        self.against.iter().find(|against| against.pair == *pair)
    }
}

impl Side {
    /// Windows whose figures are not put together yet.
    fn of(windows: &[&PointResult]) -> Self {
        let mut windows: Vec<PairedWindow> = windows.iter().map(|&window| PairedWindow::of(window)).collect();
        windows.sort_by_key(|window| window.round);
        Self { windows, ..Self::default() }
    }

    /// How many windows are in no ratio.
    pub(crate) fn excluded(&self) -> usize {
        excluded(&self.windows)
    }

    /// How many windows say that something else than the server limited them.
    pub(crate) fn limited(&self) -> usize {
        self.windows.iter().filter(|window| window.is_limited).count()
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

/// Results being compared.
struct Study<'a> {
    results: &'a LabResults,
    ours: &'a Pair,
    gathered: Vec<Windows<'a>>,
    references: &'a Analysis,
    noise: &'a Noise,
}

impl Study<'_> {
    /// Where calls were measured, in the order of reports.
    fn keys(&self) -> BTreeSet<CellKey> {
        let calls = self.gathered.iter().filter(|windows| windows.pair.is_some());
        calls.map(|windows| at(windows.point)).collect()
    }

    fn cell(&self, key: CellKey, pairs: &[&Pair]) -> ComparedCell {
        let (kind, transport, size) = key;
        let ours = self.side(key, self.ours);
        let against = pairs.iter().filter_map(|&pair| {
            let theirs = self.side(key, pair);
            let is_there = !theirs.windows.is_empty();
            is_there.then(|| self.against(key, pair, &ours, theirs))
        });
        ComparedCell {
            against: against.collect(),
            reference: self.reference(key, &ours),
            kind,
            transport,
            size,
            ours,
        }
    }

    fn against(&self, key: CellKey, pair: &Pair, ours: &Side, theirs: Side) -> Against {
        let (kind, ..) = key;
        let rate = Compared::new(
            ratio(&ours.windows, &theirs.windows, |measured| measured.rate_per_s),
            self.noise.rate(kind),
            Better::More,
        );
        let median = (kind == Kind::LONE_CALL).then(|| {
            Compared::new(
                ratio(&ours.windows, &theirs.windows, |it| it.p50_ns),
                self.noise.median(kind),
                Better::Less,
            )
        });
        let replaced = replaced(pair).map(|own| {
            let before = self.side(key, &own);
            let gain = ratio(&theirs.windows, &before.windows, |measured| measured.rate_per_s);
            Compared::new(gain, self.noise.rate(kind), Better::More)
        });
        Against { pair: pair.clone(), theirs, rate, median, replaced }
    }

    fn side(&self, key: CellKey, pair: &Pair) -> Side {
        let Some(windows) = self.windows(key, Some(pair)) else { return Side::default() };
        let system_calls = self.results.system_calls.iter().find_map(|counted| {
            let is_here = counted.pair.as_ref() == Some(pair) && at(&counted.point) == key;
            counted.measured().filter(|_| is_here)
        });
        let mut side = Side::of(&windows.all);
        if let Some(merged) = windows.merged() {
            side.rate_per_s = Some(merged.rate_per_s);
            side.latency = merged.latency_ns;
        }
        side.cost = cost(windows);
        if let (Some(cost), Some(calls)) = (&mut side.cost, system_calls) {
            cost.client.system_calls = Some(calls.client_per_operation);
            cost.server.system_calls = Some(calls.server_per_operation);
        }
        side
    }

    fn reference(&self, (kind, transport, size): CellKey, ours: &Side) -> Option<Reference> {
        let line = self.references.reference_of(kind, transport)?;
        let cell = line.at(size).filter(|cell| cell.rate_per_s > 0.0)?;
        let windows = self.windows((line.kind, transport, size), None)?;
        let share = ratio(&ours.windows, &Side::of(&windows.all).windows, |measured| measured.rate_per_s)
            .or_else(|| Some(Ratio { ratio: ours.rate_per_s? / cell.rate_per_s, interval: None, pairs: 0 }));
        Some(Reference { rate_per_s: cell.rate_per_s, share: share? })
    }

    fn windows(&self, key: CellKey, pair: Option<&Pair>) -> Option<&Windows<'_>> {
        self.gathered.iter().find(|windows| windows.pair == pair && at(windows.point) == key)
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

fn cost(windows: &Windows<'_>) -> Option<Cost> {
    let process = |side| Some(ProcessCost { used: windows.used(side)?, system_calls: None });
    Some(Cost { client: process(|usage| &usage.client)?, server: process(|usage| &usage.server)? })
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

fn distinct<'a>(pairs: impl Iterator<Item = &'a Pair>) -> Vec<Pair> {
    let mut distinct: Vec<Pair> = Vec::new();
    for pair in pairs {
        if !distinct.contains(pair) {
            distinct.push(pair.clone());
        }
    }
    distinct
}

#[cfg(test)]
pub(crate) mod tests;
