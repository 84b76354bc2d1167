//! Noise floor: the smallest difference a study can detect, measured as ours against ours.

use std::collections::BTreeMap;

use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::Ratio;

use super::kind::Kind;
use super::paired::{CellKey, PairedWindow, cell_key, excluded, is_compared, ratio};
use super::point::{Transport, Work};
use super::results::AaResult;
use super::window::AaSide;
use crate::record::CallType;

/// Noise floors of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Noise {
    /// One floor per measured kind of work.
    pub(crate) floors: Vec<Floor>,
}

/// Noise floor of one kind of work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Floor {
    pub(crate) kind: Kind,
    /// Largest log ratio of rates, in either direction, that counts as no difference. It is the largest
    /// [spread](Ratio::spread) of the cells.
    pub(crate) rate: f64,
    /// The same for median latencies; 0 for all kinds but [`Kind::LONE_CALL`].
    pub(crate) median: f64,
    /// A/A measurements behind the floor.
    pub(crate) cells: Vec<AaCell>,
}

/// Ours against ours at one size over one transport.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AaCell {
    pub(crate) transport: Transport,
    /// Payload bytes of a message.
    pub(crate) size: ByteSize,
    /// Rates, A ÷ B.
    pub(crate) rate: Option<Ratio>,
    /// Median latencies, A ÷ B.
    pub(crate) median: Option<Ratio>,
    /// Number of windows excluded from ratios.
    pub(crate) excluded: usize,
}

/// Returns the family of kinds with similar noise: lone calls, calls in flight, or streams.
fn family(kind: Kind) -> (bool, bool) {
    let is_unary = kind.work == Work::Call(CallType::Unary);
    (is_unary, is_unary && kind.in_flight > 1)
}

impl Noise {
    /// Computes the floors from A/A windows.
    pub(crate) fn of(windows: &[AaResult]) -> Self {
        let mut cells: BTreeMap<CellKey, [Vec<PairedWindow>; 2]> = BTreeMap::new();
        for AaResult { label, window } in windows {
            let sides = cells.entry(cell_key(&window.point)).or_default();
            sides[usize::from(*label == AaSide::B)].push(PairedWindow::of(window));
        }
        let mut floors: Vec<Floor> = Vec::new();
        for ((kind, transport, size), [a, b]) in cells {
            if !is_compared(kind) {
                continue;
            }
            let rate = ratio(&a, &b, |it| it.rate_per_s);
            let median = (kind == Kind::LONE_CALL).then(|| ratio(&a, &b, |it| it.p50_ns)).flatten();
            if floors.last().is_none_or(|floor| floor.kind != kind) {
                floors.push(Floor { kind, rate: 0.0, median: 0.0, cells: Vec::new() });
            }
            let floor = floors.last_mut().expect("one was pushed a moment ago");
            floor.rate = floor.rate.max(rate.map_or(0.0, Ratio::spread));
            floor.median = floor.median.max(median.map_or(0.0, Ratio::spread));
            let excluded = excluded(&a) + excluded(&b);
            floor.cells.push(AaCell { transport, size, rate, median, excluded });
        }
        Self { floors }
    }

    /// Returns the floor of this kind's rates, as a log ratio. A kind not measured against itself uses the largest
    /// floor of its family (lone calls, calls in flight, streams). If there is none, it uses the largest of all kinds.
    /// 0 if nothing was measured.
    pub(crate) fn rate(&self, kind: Kind) -> f64 {
        self.floor(kind, |floor| floor.rate)
    }

    /// Returns the floor of this kind's median latencies, as a log ratio, or else that of its rates.
    pub(crate) fn median(&self, kind: Kind) -> f64 {
        let median = self.floor(kind, |floor| floor.median);
        if median > 0.0 { median } else { self.rate(kind) }
    }

    /// Returns whether this kind was measured against itself.
    pub(crate) fn is_measured(&self, kind: Kind) -> bool {
        self.floors.iter().any(|floor| floor.kind == kind && floor.rate > 0.0)
    }

    fn floor(&self, kind: Kind, figure: fn(&Floor) -> f64) -> f64 {
        let is_family = |floor: &Floor| family(floor.kind) == family(kind);
        let measured = |floor: &Floor| Some(figure(floor)).filter(|&floor| floor > 0.0);
        nearest(&self.floors, measured, &[&|floor| floor.kind == kind, &is_family, &|_| true])
    }
}

/// Returns the largest floor, as a log ratio, among the most similar entries that have one. `alike` lists filters from
/// the most to the least similar. 0 if nothing was measured against itself.
pub(crate) fn nearest<T>(
    floors: &[T],
    figure: impl Fn(&T) -> Option<f64>,
    alike: &[&dyn Fn(&T) -> bool],
) -> f64 {
    let largest = |is_alike: &&dyn Fn(&T) -> bool| {
        let meant = floors.iter().filter(|floor| is_alike(floor));
        meant.filter_map(&figure).reduce(f64::max)
    };
    alike.iter().find_map(largest).unwrap_or(0.0)
}
