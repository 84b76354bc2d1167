//! Pairs of windows from the same round.

use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::{Interval, Ratio};
use thalweg_measure::usage::{ProcessUsage, Usage};

use super::kind::Kind;
use super::point::{Point, Transport, Work};
use super::results::PointResult;
use crate::record::LoadResult;

/// Key of a cell in a grid, the same for every pair.
pub(crate) type CellKey = (Kind, Transport, ByteSize);

/// One window of one pair.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PairedWindow {
    /// Round of the cell.
    pub(crate) round: u32,
    /// Figures, or the reason for excluding the window from ratios.
    pub(crate) outcome: Result<PairedFigures, String>,
    /// Whether its client was the bottleneck. The window still counts, because a pair is compared as a whole.
    pub(crate) is_limited: bool,
}

/// The figures of one window that ratios use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PairedFigures {
    pub(crate) rate_per_s: f64,
    /// Median latency, ns.
    pub(crate) p50_ns: f64,
    /// Processor time per operation of each side, in ns; 0 if unknown.
    pub(crate) client_ns: f64,
    pub(crate) server_ns: f64,
}

impl PairedWindow {
    pub(crate) fn of(window: &PointResult) -> Self {
        let outcome = match (window.invalid_reason(), window.measured()) {
            (None, Some(result)) => Ok(PairedFigures {
                rate_per_s: result.rate_per_s,
                p50_ns: result.latency_ns.map_or(0.0, |latency| latency.p50 as f64),
                client_ns: cpu_ns_per_operation(window, |usage| &usage.client),
                server_ns: cpu_ns_per_operation(window, |usage| &usage.server),
            }),
            (reason, _) => Err(reason.unwrap_or_default()),
        };
        let is_limited = window.measured().is_some_and(LoadResult::is_client_limit);
        Self { round: window.round, outcome, is_limited }
    }
}

/// Returns one side's processor time per operation in ns; 0 if unknown.
fn cpu_ns_per_operation(window: &PointResult, side: fn(&Usage) -> &ProcessUsage) -> f64 {
    let operations = window.measured().map_or(0, |load| load.messages);
    let used_ns = window.usage.as_ref().map_or(0, |usage| side(usage).cpu_ns());
    if operations == 0 { 0.0 } else { used_ns as f64 / operations as f64 }
}

/// Returns the number of windows excluded from ratios.
pub(crate) fn excluded(windows: &[PairedWindow]) -> usize {
    windows.iter().filter(|window| window.outcome.is_err()).count()
}

pub(crate) fn cell_key(point: &Point) -> CellKey {
    (Kind::of(point), point.transport, point.size_bytes)
}

/// Returns the ratio of a figure over the rounds in which both have a valid window.
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

/// Returns the ratio of figures paired by their round.
pub(crate) fn ratio_by_round(ones: &[(u32, f64)], others: &[(u32, f64)]) -> Option<Ratio> {
    let pair = |&(round, one): &(u32, f64)| Some((one, others.iter().find(|other| other.0 == round)?.1));
    Ratio::of_pairs(ones.iter().filter_map(pair))
}

/// Returns the confidence interval of a figure's geometric mean over windows. `None` if the figure is 0, such as the
/// median of a one-way stream.
pub(crate) fn interval(windows: &[PairedWindow], figure: fn(PairedFigures) -> f64) -> Option<Interval> {
    let measured = windows.iter().filter_map(|window| window.outcome.as_ref().ok());
    Ratio::of_pairs(measured.map(|&window| (figure(window), 1.0)))?.interval
}

/// Returns whether the kind is compared. Only calls are; sockets serve as their reference.
pub(crate) fn is_compared(kind: Kind) -> bool {
    matches!(kind.work, Work::Call(_))
}
