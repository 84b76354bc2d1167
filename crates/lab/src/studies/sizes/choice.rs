//! Recommends a call and a transport for a message size.
//!
//! Calls are compared with those for the same [job](Job), over windows of the same round. The best of several noisy
//! rates looks better than it is. The intervals of a job's pairs therefore hold together, as if the best had been
//! named before measuring.

pub(crate) mod words;

use thalweg_measure::size::ByteSize;

use super::lines::SizesLines;
use crate::load::gathered::MergedCell;
use crate::load::verdict::{Better, JudgedRatio, Verdict};
use crate::load::{Kind, Transport, Work};
use crate::record::CallType;

/// Purpose of sending messages. Calls of one job do the same work, so their figures can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Job {
    /// One-way messages; the highest rate is best.
    OneWay,
    /// Each message gets a response of the same size; the highest rate is best.
    Answered,
    /// One call at a time; the shortest time is best.
    Lone,
}

/// Recommendations over all sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choices {
    /// Calls by job, transport and size, if there are several.
    pub(crate) calls: Vec<CallChoice>,
    /// Transports by job and size, if there are two.
    pub(crate) transports: Vec<TransportChoice>,
}

/// Best call for a job at one size over one transport.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallChoice {
    pub(crate) job: Job,
    pub(crate) transport: Transport,
    pub(crate) size: ByteSize,
    /// Call with the largest rate.
    pub(crate) best: Kind,
    /// The job's other calls, nearest first, each with the best call's rate ÷ its own.
    pub(crate) others: Vec<(Kind, JudgedRatio)>,
}

/// UDS compared with TCP, for one call of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TransportChoice {
    pub(crate) job: Job,
    pub(crate) size: ByteSize,
    /// The job's call with the largest rate over either transport.
    pub(crate) kind: Kind,
    /// UDS ÷ TCP: ratio of rates, or of median latencies for a lone call.
    pub(crate) compared: JudgedRatio,
}

/// Recommendation for choosing a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// The best call is faster than all others.
    Use,
    /// The best call is faster than some and equal to the others.
    Equal,
    /// It is uncertain whether the best call is faster than some others.
    CannotTell,
}

impl Job {
    pub(crate) const ALL: [Self; 3] = [Self::OneWay, Self::Answered, Self::Lone];

    /// Returns the job's name within a sentence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OneWay => "messages one way",
            Self::Answered => "each message answered",
            Self::Lone => "a lone call",
        }
    }

    /// Returns whether this kind of call does the job.
    fn is_done_by(self, kind: Kind) -> bool {
        let Work::Call(call) = kind.work else { return false };
        match self {
            Self::OneWay => matches!(call, CallType::ClientStream | CallType::ServerStream),
            Self::Answered => matches!(call, CallType::Unary | CallType::BidiStream | CallType::PingPong),
            Self::Lone => kind == Kind::LONE_CALL,
        }
    }
}

impl Choices {
    /// Derives recommendations. Rounds of the study must hold all calls and transports of a size.
    pub(crate) fn of(analysis: &SizesLines<'_>) -> Self {
        let mut choices = Self::default();
        for job in Job::ALL {
            for size in analysis.sizes() {
                let transports = analysis.transports();
                let calls = transports.iter().map(|&transport| call(analysis, job, transport, size));
                choices.calls.extend(calls.flatten());
                choices.transports.extend(carrier(analysis, job, size));
            }
        }
        choices
    }

    /// Returns whether some call or transport is conclusively compared with another.
    pub(crate) fn is_conclusive(&self) -> bool {
        let is_conclusive =
            |compared: &JudgedRatio| !matches!(compared.verdict, Verdict::CannotTell | Verdict::NotMeasured);
        self.calls.iter().flat_map(|choice| &choice.others).any(|(_, compared)| is_conclusive(compared))
            || self.transports.iter().any(|choice| is_conclusive(&choice.compared))
    }

    /// Returns the recommended call at this size.
    pub(crate) fn call(&self, job: Job, transport: Transport, size: ByteSize) -> Option<&CallChoice> {
        let key = (job, transport, size);
        self.calls.iter().find(|choice| (choice.job, choice.transport, choice.size) == key)
    }

    /// Returns the recommended transport at this size.
    pub(crate) fn transport(&self, job: Job, size: ByteSize) -> Option<&TransportChoice> {
        self.transports.iter().find(|choice| (choice.job, choice.size) == (job, size))
    }
}

impl CallChoice {
    pub(crate) fn advice(&self) -> Advice {
        if self.unclear().next().is_some() {
            Advice::CannotTell
        } else if self.equal().next().is_some() {
            Advice::Equal
        } else {
            Advice::Use
        }
    }

    /// Returns the calls equal to the best one, within the margin.
    pub(crate) fn equal(&self) -> impl Iterator<Item = Kind> {
        self.with(|verdict| verdict == Verdict::NoDifference).map(|(kind, _)| kind)
    }

    /// Returns the calls for which it is uncertain whether the best one is faster.
    pub(crate) fn unclear(&self) -> impl Iterator<Item = Kind> {
        let is_unclear = |verdict| !matches!(verdict, Verdict::Faster | Verdict::NoDifference);
        self.with(is_unclear).map(|(kind, _)| kind)
    }

    /// Returns the nearest of the calls slower than the best one.
    pub(crate) fn next(&self) -> Option<(Kind, JudgedRatio)> {
        self.with(|verdict| verdict == Verdict::Faster).next()
    }

    fn with(&self, wanted: impl Fn(Verdict) -> bool) -> impl Iterator<Item = (Kind, JudgedRatio)> {
        self.others.iter().copied().filter(move |(_, compared)| wanted(compared.verdict))
    }
}

/// Returns the cells of a job's calls, over one transport at one size.
fn candidates<'a, 'r>(
    analysis: &'a SizesLines<'r>,
    job: Job,
    transport: Transport,
    size: ByteSize,
) -> Vec<(Kind, &'a MergedCell<'r>)> {
    let lines = analysis.calls().filter(|line| line.transport == transport && job.is_done_by(line.kind));
    lines.filter_map(|line| Some((line.kind, line.at(size)?))).collect()
}

fn call(analysis: &SizesLines<'_>, job: Job, transport: Transport, size: ByteSize) -> Option<CallChoice> {
    let candidates = candidates(analysis, job, transport, size);
    let pairs = candidates.len() * candidates.len().saturating_sub(1) / 2;
    let &(best, best_cell) =
        candidates.iter().max_by(|(_, a), (_, b)| a.rate_per_s().total_cmp(&b.rate_per_s()))?;
    let compared = |&(kind, cell): &(Kind, &MergedCell<'_>)| {
        let floor = analysis.noise.rate(best).max(analysis.noise.rate(kind));
        let ratio = best_cell.ratio_to(cell, |it| it.rate_per_s);
        (kind, JudgedRatio::new(ratio.map(|ratio| ratio.corrected_for(pairs)), floor, Better::More))
    };
    let mut others: Vec<(Kind, JudgedRatio)> =
        candidates.iter().filter(|(kind, _)| *kind != best).map(compared).collect();
    let distance = |compared: &JudgedRatio| compared.ratio.map_or(0.0, |ratio| ratio.ratio);
    others.sort_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)));
    (!others.is_empty()).then_some(CallChoice { job, transport, size, best, others })
}

fn carrier(analysis: &SizesLines<'_>, job: Job, size: ByteSize) -> Option<TransportChoice> {
    let [tcp, uds] = Transport::ALL.map(|transport| candidates(analysis, job, transport, size));
    let both: Vec<(Kind, &MergedCell<'_>, &MergedCell<'_>)> = tcp
        .iter()
        .filter_map(|&(kind, tcp)| Some((kind, tcp, uds.iter().find(|(other, _)| *other == kind)?.1)))
        .collect();
    let most =
        |&(_, tcp, uds): &(Kind, &MergedCell<'_>, &MergedCell<'_>)| tcp.rate_per_s().max(uds.rate_per_s());
    let &(kind, tcp, uds) = both.iter().max_by(|a, b| most(a).total_cmp(&most(b)))?;
    let compared = if job == Job::Lone {
        uds.compare_median(tcp, analysis.noise.median(kind))
    } else {
        let ratio = uds.ratio_to(tcp, |it| it.rate_per_s).map(|ratio| ratio.corrected_for(both.len()));
        JudgedRatio::new(ratio, analysis.noise.rate(kind), Better::More)
    };
    Some(TransportChoice { job, size, kind, compared })
}

#[cfg(test)]
mod tests;
