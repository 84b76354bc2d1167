//! Percentile curves of bounded length, from the windows' histograms.

use thalweg_measure::distribution::Distribution;
use thalweg_measure::figures::short;
use thalweg_measure::page::chart::{Chart, LineStyle, Mark, Series, Unit, XAxis, YAxis};
use thalweg_measure::page::section::{Block, Choice, When, when};
use thalweg_measure::size::ByteSize;

use super::anchor::{anchor, kind_id};
use super::plots::unhidden;
use crate::load::gathered::{MergedCell, distinct};
use crate::load::multiples::hue;
use crate::load::{Kind, Transport};
use crate::record::LoadResult;

/// Points per additional nine: 90 %, 92.5 %, 94.4 %, …, 99 %.
const STEPS_PER_NINE: u32 = 8;
/// Last point of a curve: 99.9999 %, however many operations there are.
const NINES_MAX: u32 = 6;

/// Latency distribution of one cell. Point `i` of each column is the percentile 1 − 10^(−i ÷ [`STEPS_PER_NINE`]), ns.
/// A column ends where fewer than one operation would lie above.
#[derive(Debug, PartialEq)]
struct Curve {
    kind: Kind,
    transport: Transport,
    size: ByteSize,
    /// Percentiles of all valid windows together.
    all: Vec<u64>,
    /// Lowest and highest percentiles of single windows, as far as at least two of them reach.
    low: Vec<u64>,
    high: Vec<u64>,
}

/// Returns the chart of latency over percentile: sizes of one kind of call, or kinds of call at one size.
pub(super) fn blocks(own: &[MergedCell<'_>]) -> Vec<Block> {
    let curves: Vec<Curve> = own.iter().filter_map(curve).collect();
    if curves.is_empty() {
        return vec![Block::about(
            "No percentiles: one-way streams have no latency that the client can observe.",
        )];
    }
    let of_kinds = distinct(curves.iter().map(|curve| curve.kind));
    let mut sizes = distinct(curves.iter().map(|curve| curve.size));
    sizes.sort_unstable();
    let transports = distinct(curves.iter().map(|curve| curve.transport));
    let named =
        |name: &'static str, label, options: Vec<(String, String)>| Choice::list(name, label, options);
    let calls = of_kinds.iter().map(|kind| (kind_id(*kind), kind.label())).collect();
    let bytes = sizes.iter().map(|size| (size.0.to_string(), size.to_string())).collect();
    let carriers = transports.iter().map(|transport| (transport.to_string(), transport.to_string()));
    vec![
        Block::Choices(vec![
            Choice::buttons(
                "curves",
                "Curves",
                [("size", "sizes of one call"), ("kind", "calls of one size")],
            ),
            named("curve-call", "Call", calls).when(when("curves", ["size"])),
            named("curve-size", "Size", bytes).when(when("curves", ["kind"])),
            Choice::buttons("carrier", "Transport of the curves", carriers),
        ]),
        Block::Wide(vec![chart(&curves, &of_kinds, &sizes)]),
        Block::hint(
            "A line combines all windows of a cell. The band around it spans the lowest and highest single window, as \
             long as two windows have that many operations. The percentiles in the table of figures are \
             medians over windows. One-way streams have no latency that the client can observe. A line ends where \
             fewer than one operation lies above, at 99.9999 % at the latest.",
        ),
    ]
}

fn chart(curves: &[Curve], kinds: &[Kind], sizes: &[ByteSize]) -> Chart {
    let of_size = |(index, size): (usize, &ByteSize)| LineStyle {
        name: size.to_string(),
        short: size.to_string(),
        colour: hue(index, sizes.len()),
        width: 2.2,
        ..LineStyle::default()
    };
    let of_kinds = kinds.iter().copied().map(unhidden);
    let points = curves.iter().map(|curve| curve.all.len()).max().unwrap_or(0);
    let series = |curve: &Curve| {
        let shown = |curves: &str, choice: &'static str, value: String| {
            When::from([
                ("curves", vec![curves.to_owned()]),
                (choice, vec![value]),
                ("carrier", vec![curve.transport.to_string()]),
            ])
        };
        let size = sizes.iter().position(|it| *it == curve.size).unwrap_or_default();
        let kind = kinds.iter().position(|it| *it == curve.kind).unwrap_or_default() + sizes.len();
        let column = |values: &[u64]| values.iter().map(|&ns| Some(ns as f64)).collect();
        Series {
            shown: vec![
                (size, shown("size", "curve-call", kind_id(curve.kind))),
                (kind, shown("kind", "curve-size", curve.size.0.to_string())),
            ],
            y: column(&curve.all),
            low: column(&curve.low),
            high: column(&curve.high),
            band: true,
            mark: Mark::Line,
            link: Some(anchor(curve.kind, curve.transport, curve.size)),
            ..Series::default()
        }
    };
    Chart {
        id: "percentiles".to_owned(),
        title: "Latency by percentile".to_owned(),
        about: "percentage of operations that took no longer than this; lower is better".to_owned(),
        class: "tall",
        empty: "No valid window was measured, or it is a one-way stream, which has no latency that the client can \
                observe."
            .to_owned(),
        x: XAxis {
            at: (0..points).map(|index| index as f64 / f64::from(STEPS_PER_NINE)).collect(),
            nines: true,
            ..XAxis::default()
        },
        y: YAxis { unit: Unit::Time, log: true, ..YAxis::default() },
        styles: sizes.iter().enumerate().map(of_size).chain(of_kinds).collect(),
        series: curves.iter().map(series).collect(),
        ..Chart::default()
    }
}

/// Returns the curve of a cell with latencies.
fn curve(cell: &MergedCell<'_>) -> Option<Curve> {
    let decoded = |(_, load): (_, &LoadResult)| Distribution::restored(&load.histogram, &load.latency_ns?);
    let of_windows: Vec<Distribution> =
        cell.valid().filter_map(decoded).filter(|it| !it.is_empty()).collect();
    let (first, rest) = of_windows.split_first()?;
    let mut merged = first.clone();
    for window in rest {
        merged.merge(window);
    }
    let all = percentiles(&merged);
    let single: Vec<Vec<u64>> = of_windows.iter().map(percentiles).collect();
    let range = |choose: fn(std::vec::IntoIter<u64>) -> Option<u64>| {
        let at = |index| {
            let reached: Vec<u64> = single.iter().filter_map(|column| column.get(index).copied()).collect();
            if reached.len() > 1 { choose(reached.into_iter()) } else { None }
        };
        (0..all.len()).map_while(at).collect()
    };
    Some(Curve {
        kind: cell.kind(),
        transport: cell.point.transport,
        size: cell.size(),
        low: range(Iterator::min),
        high: range(Iterator::max),
        all,
    })
}

/// Returns percentiles for [`Curve`], rounded to four digits because more would be noise.
fn percentiles(latencies: &Distribution) -> Vec<u64> {
    let steps = (latencies.len() as f64).log10() * f64::from(STEPS_PER_NINE);
    let last = (steps + 1e-9).floor().min(f64::from(NINES_MAX * STEPS_PER_NINE)) as u32;
    let share = |step: u32| 1.0 - 10_f64.powf(-f64::from(step) / f64::from(STEPS_PER_NINE));
    (0..=last).map(|step| short(latencies.value_at(share(step)) as f64) as u64).collect()
}

#[cfg(test)]
mod tests {
    use thalweg_measure::histogram::Histogram;

    use super::*;
    use crate::tests::sample;

    fn distribution(values: impl Iterator<Item = u64>) -> Distribution {
        let mut distribution = Distribution::new();
        values.for_each(|ns| distribution.record(ns));
        distribution
    }

    #[test]
    fn curve_passes_through_percentiles_and_ends_at_operation_count() {
        let curve = percentiles(&distribution(1..=1000));
        assert_eq!(curve.len(), 3 * STEPS_PER_NINE as usize + 1);
        let at = |nines: u32| curve[(nines * STEPS_PER_NINE) as usize];
        assert_eq!([at(0), at(1), at(2), at(3)], [1, 900, 990, 999]);
        assert!(curve.is_sorted());
    }

    #[test]
    fn curve_has_limited_points_per_nine() {
        let mut many = Distribution::new();
        many.record_many(100, u64::MAX / 4);
        assert_eq!(percentiles(&many).len(), (NINES_MAX * STEPS_PER_NINE) as usize + 1);
        assert_eq!(percentiles(&distribution([100].into_iter())), [100]);
    }

    #[test]
    fn histogram_without_counts_gives_no_curve() {
        let mut results = sample::sizes();
        results.points.truncate(1);
        for none in [Histogram::default(), distribution(std::iter::empty()).histogram()] {
            results.points[0].measured_mut().unwrap().histogram = none;
            assert_eq!(results.gather_cells().iter().find_map(curve), None);
        }
    }

    #[test]
    fn windows_are_merged_and_their_range_is_kept() {
        let mut results = sample::sizes();
        let first = results.points.swap_remove(0);
        let window = |round, values: std::ops::RangeInclusive<u64>| {
            let mut window = first.clone();
            window.round = round;
            let crate::load::Outcome::Measured(measured) = &mut window.outcome else { panic!() };
            let values = distribution(values);
            (measured.histogram, measured.latency_ns) = (values.histogram(), values.latency());
            window
        };
        // The third window is too short for the range to reach beyond 90 %.
        results.points = vec![window(0, 1..=100), window(1, 901..=1000), window(2, 1001..=1010)];
        let [cell] = results.gather_cells().try_into().unwrap();
        let curve = curve(&cell).unwrap();
        assert_eq!((curve.all[0], curve.low[0], curve.high[0]), (1, 1, 1001));
        assert_eq!(curve.low.len(), 2 * STEPS_PER_NINE as usize + 1);
        assert_eq!((curve.low[8], curve.high[8]), (90, 1009));
        assert_eq!((curve.low[16], curve.high[16]), (99, 999));
        // The 189th of 210 operations.
        assert_eq!(curve.all[8], 989);
    }
}
