//! Which call to use for messages of a size, and over which transport.
//!
//! A call is compared with those that do the same [job](Job), from windows of the same round. The best of several noisy
//! rates looks better than it is: so the intervals of all pairs of a job's calls hold at once, and what is said of the
//! best is as sure as if it had been named before measuring.

pub(crate) mod words;

use thalweg_measure::size::ByteSize;

use super::lines::SizesLines;
use crate::load::gathered::Windows;
use crate::load::verdict::{Better, Compared, Verdict};
use crate::load::{Kind, Transport, Work};
use crate::record::CallType;

/// What somebody wants of messages. Calls of one job do the same work, and their figures may be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Job {
    /// Messages go one way, and most of them per second is best.
    OneWay,
    /// Each message is answered with one of its size, and most of them per second is best.
    Answered,
    /// One call at a time: the shortest wait is best.
    Lone,
}

/// What a study says of all its sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choices {
    /// By job, transport and size, where there are several calls to choose from.
    pub(crate) calls: Vec<CallChoice>,
    /// By job and size, where there are two transports.
    pub(crate) transports: Vec<TransportChoice>,
}

/// Which call does a job best at a size, over one transport.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallChoice {
    pub(crate) job: Job,
    pub(crate) transport: Transport,
    pub(crate) size: ByteSize,
    /// That of the largest rate.
    pub(crate) best: Kind,
    /// The job's other calls, each with the ratio of the best one's rate to its own, nearest first.
    pub(crate) others: Vec<(Kind, Compared)>,
}

/// What one call that does a job takes over UDS, beside TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TransportChoice {
    pub(crate) job: Job,
    pub(crate) size: ByteSize,
    /// The job's call of the largest rate over either.
    pub(crate) kind: Kind,
    /// UDS ÷ TCP: of rates, and of a lone call of median latencies.
    pub(crate) compared: Compared,
}

/// What follows for somebody who must choose a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// The best one is faster than all others.
    Use,
    /// The best one is faster than some and equal to the others.
    Equal,
    /// There are some of which it is not known whether the best one is faster.
    CannotTell,
}

impl Job {
    pub(crate) const ALL: [Self; 3] = [Self::OneWay, Self::Answered, Self::Lone];

    /// What is wanted, within a sentence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OneWay => "messages one way",
            Self::Answered => "each message answered",
            Self::Lone => "a lone call",
        }
    }

    /// This kind of call does it.
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
    /// What can be chosen from the lines of a study whose rounds hold all calls and transports of a size.
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

    /// It is known of a call or a transport whether it is faster than another.
    pub(crate) fn is_told(&self) -> bool {
        let is_told =
            |compared: &Compared| !matches!(compared.verdict, Verdict::CannotTell | Verdict::NotMeasured);
        self.calls.iter().flat_map(|choice| &choice.others).any(|(_, compared)| is_told(compared))
            || self.transports.iter().any(|choice| is_told(&choice.compared))
    }

    /// The choice of a call at this size.
    pub(crate) fn call(&self, job: Job, transport: Transport, size: ByteSize) -> Option<&CallChoice> {
        let place = (job, transport, size);
        self.calls.iter().find(|choice| (choice.job, choice.transport, choice.size) == place)
    }

    /// The choice of a transport at this size.
    pub(crate) fn transport(&self, job: Job, size: ByteSize) -> Option<&TransportChoice> {
        self.transports.iter().find(|choice| (choice.job, choice.size) == (job, size))
    }
}

impl CallChoice {
    /// What follows.
    pub(crate) fn advice(&self) -> Advice {
        if self.unclear().next().is_some() {
            Advice::CannotTell
        } else if self.equal().next().is_some() {
            Advice::Equal
        } else {
            Advice::Use
        }
    }

    /// Those that the best one is known to be no more than the margin away from.
    pub(crate) fn equal(&self) -> impl Iterator<Item = Kind> {
        self.with(|verdict| verdict == Verdict::NoDifference).map(|(kind, _)| kind)
    }

    /// Those of which it is not known whether the best one is faster.
    pub(crate) fn unclear(&self) -> impl Iterator<Item = Kind> {
        let is_unclear = |verdict| !matches!(verdict, Verdict::Faster | Verdict::NoDifference);
        self.with(is_unclear).map(|(kind, _)| kind)
    }

    /// The nearest of those that the best one is faster than.
    pub(crate) fn next(&self) -> Option<(Kind, Compared)> {
        self.with(|verdict| verdict == Verdict::Faster).next()
    }

    fn with(&self, wanted: impl Fn(Verdict) -> bool) -> impl Iterator<Item = (Kind, Compared)> {
        self.others.iter().copied().filter(move |(_, compared)| wanted(compared.verdict))
    }
}

/// The cells of those that do a job, over one transport at one size.
fn candidates<'a, 'r>(
    analysis: &'a SizesLines<'r>,
    job: Job,
    transport: Transport,
    size: ByteSize,
) -> Vec<(Kind, &'a Windows<'r>)> {
    let lines = analysis.calls().filter(|line| line.transport == transport && job.is_done_by(line.kind));
    lines.filter_map(|line| Some((line.kind, line.at(size)?))).collect()
}

fn call(analysis: &SizesLines<'_>, job: Job, transport: Transport, size: ByteSize) -> Option<CallChoice> {
    let candidates = candidates(analysis, job, transport, size);
    let pairs = candidates.len() * candidates.len().saturating_sub(1) / 2;
    let &(best, best_cell) =
        candidates.iter().max_by(|(_, a), (_, b)| a.rate_per_s().total_cmp(&b.rate_per_s()))?;
    let beside = |&(kind, cell): &(Kind, &Windows<'_>)| {
        let floor = analysis.noise.rate(best).max(analysis.noise.rate(kind));
        let ratio = best_cell.over(cell, |it| it.rate_per_s);
        (kind, Compared::new(ratio.map(|ratio| ratio.among(pairs)), floor, Better::More))
    };
    let mut others: Vec<(Kind, Compared)> =
        candidates.iter().filter(|(kind, _)| *kind != best).map(beside).collect();
    let distance = |compared: &Compared| compared.ratio.map_or(0.0, |ratio| ratio.ratio);
    others.sort_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)));
    (!others.is_empty()).then_some(CallChoice { job, transport, size, best, others })
}

fn carrier(analysis: &SizesLines<'_>, job: Job, size: ByteSize) -> Option<TransportChoice> {
    let [tcp, uds] = Transport::ALL.map(|transport| candidates(analysis, job, transport, size));
    let both: Vec<(Kind, &Windows<'_>, &Windows<'_>)> = tcp
        .iter()
        .filter_map(|&(kind, tcp)| Some((kind, tcp, uds.iter().find(|(other, _)| *other == kind)?.1)))
        .collect();
    let most = |&(_, tcp, uds): &(Kind, &Windows<'_>, &Windows<'_>)| tcp.rate_per_s().max(uds.rate_per_s());
    let &(kind, tcp, uds) = both.iter().max_by(|a, b| most(a).total_cmp(&most(b)))?;
    let compared = if job == Job::Lone {
        uds.median_beside(tcp, analysis.noise.median(kind))
    } else {
        let ratio = uds.over(tcp, |it| it.rate_per_s).map(|ratio| ratio.among(both.len()));
        Compared::new(ratio, analysis.noise.rate(kind), Better::More)
    };
    Some(TransportChoice { job, size, kind, compared })
}

#[cfg(test)]
mod tests;
