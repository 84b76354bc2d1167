//! Windows of the same round, side by side.

use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::{Interval, Ratio};
use thalweg_measure::usage::{ProcessUsage, Usage};

use super::kind::Kind;
use super::point::{Point, Transport, Work};
use super::results::PointResult;
use crate::record::LoadResult;

/// A cell of a grid, whoever measured it.
pub(crate) type CellKey = (Kind, Transport, ByteSize);

/// One window of one pair.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PairedWindow {
    /// Which turn of the cell.
    pub(crate) round: u32,
    /// What it measured, or why it is in no ratio.
    pub(crate) outcome: Result<PairedFigures, String>,
    /// Its client was the limit. It is in the ratio all the same, because a pair is compared as a whole.
    pub(crate) is_limited: bool,
}

/// The figures of one window that ratios are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PairedFigures {
    /// Operations per second.
    pub(crate) rate_per_s: f64,
    /// Median latency, ns.
    pub(crate) p50_ns: f64,
    /// Processor time of an operation, of either side, ns; 0 where it is not known.
    pub(crate) client_ns: f64,
    pub(crate) server_ns: f64,
}

impl PairedWindow {
    pub(crate) fn of(window: &PointResult) -> Self {
        let outcome = match (window.why_not(), window.measured()) {
            (None, Some(result)) => Ok(PairedFigures {
                rate_per_s: result.rate_per_s,
                p50_ns: result.latency_ns.map_or(0.0, |latency| latency.p50 as f64),
                client_ns: of_operation(window, |usage| &usage.client),
                server_ns: of_operation(window, |usage| &usage.server),
            }),
            (reason, _) => Err(reason.unwrap_or_default()),
        };
        let is_limited = window.measured().is_some_and(LoadResult::is_client_limit);
        Self { round: window.round, outcome, is_limited }
    }
}

/// Processor time of an operation of one side, ns; 0 where it is not known.
fn of_operation(window: &PointResult, side: fn(&Usage) -> &ProcessUsage) -> f64 {
    let operations = window.measured().map_or(0, |load| load.messages);
    let used_ns = window.usage.as_ref().map_or(0, |usage| side(usage).cpu_ns());
    if operations == 0 { 0.0 } else { used_ns as f64 / operations as f64 }
}

/// How many windows are in no ratio.
pub(crate) fn excluded(windows: &[PairedWindow]) -> usize {
    windows.iter().filter(|window| window.outcome.is_err()).count()
}

pub(crate) fn at(point: &Point) -> CellKey {
    (Kind::of(point), point.transport, point.size_bytes)
}

/// The ratio of a figure over the rounds that have a good window of both.
pub(crate) fn ratio(
    ours: &[PairedWindow],
    theirs: &[PairedWindow],
    figure: impl Fn(PairedFigures) -> f64,
) -> Option<Ratio> {
    let good = |windows: &[PairedWindow]| -> Vec<(u32, f64)> {
        let measured = |window: &PairedWindow| Some((window.round, figure(*window.outcome.as_ref().ok()?)));
        windows.iter().filter_map(measured).collect()
    };
    ratio_by_round(&good(ours), &good(theirs))
}

/// The ratio of figures, each with its round: those of the same round make a pair.
pub(crate) fn ratio_by_round(ones: &[(u32, f64)], others: &[(u32, f64)]) -> Option<Ratio> {
    let pair = |&(round, one): &(u32, f64)| Some((one, others.iter().find(|other| other.0 == round)?.1));
    Ratio::of_pairs(ones.iter().filter_map(pair))
}

/// Where the geometric mean of a figure lies, told from its windows; none where the figure is 0, as medians of streams
/// one way are.
pub(crate) fn interval(windows: &[PairedWindow], figure: fn(PairedFigures) -> f64) -> Option<Interval> {
    let measured = windows.iter().filter_map(|window| window.outcome.as_ref().ok());
    Ratio::of_pairs(measured.map(|&window| (figure(window), 1.0)))?.interval
}

/// Only calls are compared; sockets are their reference.
pub(crate) fn is_call(kind: Kind) -> bool {
    matches!(kind.work, Work::Call(_))
}
