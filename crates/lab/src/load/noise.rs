//! How small a difference a study can see: ours against ours.

use std::collections::BTreeMap;

use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::Ratio;

use super::kind::Kind;
use super::paired::{CellKey, PairedWindow, at, excluded, is_call, ratio};
use super::point::{Transport, Work};
use super::results::AaResult;
use super::window::Label;
use crate::record::CallType;

/// What the same stack measured against itself came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Noise {
    /// One for each kind of work that was measured so.
    pub(crate) floors: Vec<Floor>,
}

/// Of one kind of work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Floor {
    /// Which kind.
    pub(crate) kind: Kind,
    /// A log ratio of rates that is not farther from 0 than this is no difference: the largest
    /// [spread](Ratio::spread) of the cells.
    pub(crate) rate: f64,
    /// The same of median latencies; 0 for all kinds but [`Kind::LONE_CALL`].
    pub(crate) median: f64,
    /// Where it was measured.
    pub(crate) cells: Vec<AaCell>,
}

/// Ours against ours, at one size over one transport.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AaCell {
    /// What carried it.
    pub(crate) transport: Transport,
    /// Payload bytes of a message.
    pub(crate) size: ByteSize,
    /// Rates, A ÷ B.
    pub(crate) rate: Option<Ratio>,
    /// Median latencies, A ÷ B.
    pub(crate) median: Option<Ratio>,
    /// Windows that are in no ratio.
    pub(crate) excluded: usize,
}

/// Kinds that are disturbed alike: lone calls, calls in flight, streams.
fn family(kind: Kind) -> (bool, bool) {
    let is_unary = kind.work == Work::Call(CallType::Unary);
    (is_unary, is_unary && kind.in_flight > 1)
}

impl Noise {
    /// The floors of what ours did against ours.
    pub(crate) fn of(windows: &[AaResult]) -> Self {
        let mut cells: BTreeMap<CellKey, [Vec<PairedWindow>; 2]> = BTreeMap::new();
        for AaResult { label, window } in windows {
            let sides = cells.entry(at(&window.point)).or_default();
            sides[usize::from(*label == Label::B)].push(PairedWindow::of(window));
        }
        let mut floors: Vec<Floor> = Vec::new();
        for ((kind, transport, size), [a, b]) in cells {
            if !is_call(kind) {
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

    /// The floor of this kind's rates, as a log ratio. A kind that was not measured against itself has the largest
    /// floor of those of its family (lone calls, calls in flight, streams), and where there is none of all. 0 when
    /// none was.
    pub(crate) fn rate(&self, kind: Kind) -> f64 {
        self.floor(kind, |floor| floor.rate)
    }

    /// The floor of this kind's median latencies, as a log ratio; that of rates where there is none.
    pub(crate) fn median(&self, kind: Kind) -> f64 {
        let median = self.floor(kind, |floor| floor.median);
        if median > 0.0 { median } else { self.rate(kind) }
    }

    /// This kind was measured against itself.
    pub(crate) fn is_measured(&self, kind: Kind) -> bool {
        self.floors.iter().any(|floor| floor.kind == kind && floor.rate > 0.0)
    }

    fn floor(&self, kind: Kind, figure: fn(&Floor) -> f64) -> f64 {
        let is_family = |floor: &Floor| family(floor.kind) == family(kind);
        let measured = |floor: &Floor| Some(figure(floor)).filter(|&floor| floor > 0.0);
        nearest(&self.floors, measured, &[&|floor| floor.kind == kind, &is_family, &|_| true])
    }
}

/// The largest floor, as a log ratio, of those that are most alike. `alike` goes from what is most like that which is
/// looked for to what is least like it; 0 where nothing was measured against itself.
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
