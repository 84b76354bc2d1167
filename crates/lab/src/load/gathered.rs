//! Windows of the same cell, gathered and merged.

use std::cell::OnceCell;

use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::distribution::Latency;
use thalweg_measure::histogram::Histogram;
use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::{Interval, Ratio, geometric_mean, median};

use super::kind::Kind;
use super::measurement::{SystemCalls, WireTraffic};
use super::paired::{PairedFigures, PairedWindow, excluded, interval, ratio};
use super::point::Point;
use super::results::{LabResults, PointResult};
use super::strategy::Strategy;
use super::verdict::{Better, JudgedRatio};
use super::window::WindowRequest;
use crate::record::{LoadResult, Note, Pace, SPIKES_MAX, Spike};
use crate::stack::Pair;

/// All windows of one pair, or of a bare socket, at one point, with their merged figures. This is a cell of any study
/// of calls.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MergedCell<'a> {
    /// The point that each window measured.
    pub(crate) point: &'a Point,
    /// Client and server; `None` for a bare socket.
    pub(crate) pair: Option<&'a Pair>,
    /// Connection strategy of the client.
    pub(crate) strategy: Option<Strategy>,
    /// Windows in the order of measuring; empty for a pair that was not measured here.
    pub(crate) all: Vec<&'a PointResult>,
    /// The same windows in the order of rounds, as ratios need them.
    pub(crate) rounds: Vec<PairedWindow>,
    /// System calls, counted in a separate run.
    pub(crate) system_calls: Option<SystemCalls>,
    /// Wire traffic, watched in a separate window.
    pub(crate) wire: Option<&'a WireTraffic>,
    merged: Option<LoadResult>,
    /// Intervals of rate, median and server time. They are expensive and therefore computed on first use.
    intervals: [OnceCell<Option<Interval>>; 3],
}

/// Gathers windows by point, pair and connection strategy, in the order in which each group was first measured.
pub(crate) fn gather_cells<'a>(results: impl IntoIterator<Item = &'a PointResult>) -> Vec<MergedCell<'a>> {
    let key = |result: &&'a PointResult| (&result.point, result.pair.as_ref(), result.strategy);
    grouped(results, key)
        .into_iter()
        .map(|((point, pair, _), all)| MergedCell::of(point, pair, all))
        .collect()
}

impl LabResults {
    /// Gathers the windows of figures by cell and adds the separate system-call counts and wire traffic.
    pub(crate) fn gather_cells(&self) -> Vec<MergedCell<'_>> {
        let mut gathered = gather_cells(&self.points);
        for cell in &mut gathered {
            let counted = self.system_calls.iter().find(|it| cell.matches_request(&it.request));
            let watched = self.wire.iter().find(|it| cell.matches_request(&it.request));
            cell.system_calls = counted.and_then(|it| it.measured().copied());
            cell.wire = watched.and_then(|it| it.measured());
        }
        gathered
    }
}

impl<'a> MergedCell<'a> {
    /// Gathers the windows of one pair at one point.
    pub(crate) fn of(point: &'a Point, pair: Option<&'a Pair>, all: Vec<&'a PointResult>) -> Self {
        let mut rounds: Vec<PairedWindow> = all.iter().map(|&window| PairedWindow::of(window)).collect();
        rounds.sort_by_key(|window| window.round);
        Self {
            point,
            pair,
            strategy: all.first().and_then(|first| first.strategy),
            rounds,
            system_calls: None,
            wire: None,
            merged: merged(&all),
            intervals: Default::default(),
            all,
        }
    }

    /// Returns whether the request is for this cell, regardless of purpose, warm-up and duration.
    fn matches_request(&self, request: &WindowRequest) -> bool {
        let Point { warmup, duration, .. } = *self.point;
        (self.pair, self.strategy) == (request.pair.as_ref(), request.strategy)
            && *self.point == Point { warmup, duration, ..request.point }
    }

    /// Returns the valid windows with their results.
    pub(crate) fn valid(&self) -> impl Iterator<Item = (&'a PointResult, &'a LoadResult)> {
        self.all.iter().filter_map(|&window| Some((window, window.valid()?)))
    }

    /// Returns why windows are not valid, each reason once.
    pub(crate) fn invalid_reasons(&self) -> String {
        let mut reasons: Vec<String> = self.all.iter().filter_map(|window| window.invalid_reason()).collect();
        reasons.dedup_by(|a, b| without_figures(a) == without_figures(b));
        reasons.join("; ")
    }

    /// Returns the valid windows as one result, or `None` if none is valid.
    ///
    /// The rate is the geometric mean, as for ratios. Percentiles are medians of the windows' percentiles. Minimum and
    /// maximum are over all windows, and counts are sums. Errors of invalid windows count too.
    pub(crate) fn merged(&self) -> Option<&LoadResult> {
        self.merged.as_ref()
    }

    /// Returns operations per second, the geometric mean of the valid windows.
    pub(crate) fn rate(&self) -> Option<f64> {
        Some(self.merged()?.rate_per_s)
    }

    /// Returns operations per second, or 0 if no window is valid.
    pub(crate) fn rate_per_s(&self) -> f64 {
        self.rate().unwrap_or_default()
    }

    /// Returns the 95 % confidence interval of the rate; `None` with too few windows.
    pub(crate) fn rate_interval(&self) -> Option<Interval> {
        self.interval(0, |window| window.rate_per_s)
    }

    /// Returns the 95 % confidence interval of the median latency.
    pub(crate) fn p50_interval(&self) -> Option<Interval> {
        self.interval(1, |window| window.p50_ns)
    }

    /// Returns the 95 % confidence interval of the server's processor time per operation.
    pub(crate) fn server_interval(&self) -> Option<Interval> {
        self.interval(2, |window| window.server_ns)
    }

    fn interval(&self, index: usize, figure: fn(PairedFigures) -> f64) -> Option<Interval> {
        *self.intervals[index].get_or_init(|| interval(&self.rounds, figure))
    }

    /// Returns payload bytes per second in one direction.
    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.rate_per_s() * self.point.size_bytes.0 as f64
    }

    /// Returns the latency of one operation, as medians of the valid windows' percentiles. `None` for one-way
    /// messages.
    pub(crate) fn latency(&self) -> Option<Latency> {
        self.merged()?.latency_ns
    }

    /// Returns the pace of one-way messages.
    pub(crate) fn pace(&self) -> Option<Pace> {
        self.merged()?.pace_ns
    }

    /// Returns the latency [named](Latency::named) `name`, in ns.
    pub(crate) fn latency_named(&self, name: &str) -> Option<f64> {
        self.latency()?.named(name)
    }

    /// Returns the ratio of a figure to another cell's, over the rounds in which both have a valid window.
    pub(crate) fn ratio_to(&self, other: &Self, figure: fn(PairedFigures) -> f64) -> Option<Ratio> {
        ratio(&self.rounds, &other.rounds, figure)
    }

    /// Returns a figure of each valid window.
    pub(crate) fn figure_of_each_window(&self, figure: fn(PairedFigures) -> f64) -> Vec<f64> {
        self.rounds.iter().filter_map(|window| Some(figure(*window.outcome.as_ref().ok()?))).collect()
    }

    /// Returns the kind of work, without size and transport.
    pub(crate) fn kind(&self) -> Kind {
        Kind::of(self.point)
    }

    /// Returns the payload bytes of a message.
    pub(crate) fn size(&self) -> ByteSize {
        self.point.size_bytes
    }

    /// Compares the median latency with another cell's, over the same rounds.
    pub(crate) fn compare_median(&self, other: &Self, floor: f64) -> JudgedRatio {
        JudgedRatio::new(self.ratio_to(other, |it| it.p50_ns), floor, Better::Less)
    }

    /// Compares the rate with another cell's, over the same rounds.
    pub(crate) fn compare_rate(&self, other: &Self, floor: f64) -> JudgedRatio {
        JudgedRatio::new(self.ratio_to(other, |it| it.rate_per_s), floor, Better::More)
    }

    /// Returns the median latency in ns.
    pub(crate) fn p50_ns(&self) -> Option<u64> {
        Some(self.latency()?.p50)
    }

    /// Returns the longest wait, with its time.
    pub(crate) fn spike(&self) -> Option<&Spike> {
        self.merged()?.spikes.first()
    }

    /// Returns the reference for long waits: the median latency, or the mean time between two clock readings.
    pub(crate) fn typical_ns(&self) -> Option<f64> {
        self.p50_ns().map(|p50_ns| p50_ns as f64).or(self.pace().map(Pace::between_readings_ns))
    }

    /// Returns the number of windows excluded from ratios.
    pub(crate) fn excluded(&self) -> usize {
        excluded(&self.rounds)
    }

    /// Returns whether the client was the bottleneck.
    pub(crate) fn is_client_limit(&self) -> bool {
        self.merged().is_some_and(LoadResult::is_client_limit)
    }

    /// Returns the number of windows whose client was the bottleneck.
    pub(crate) fn limited(&self) -> usize {
        self.rounds.iter().filter(|window| window.is_limited).count()
    }

    /// Returns whether enough windows are valid for a claim: as many as an interval needs, or all.
    pub(crate) fn has_enough_windows(&self) -> bool {
        self.excluded() == 0 || self.rate_interval().is_some()
    }

    /// Returns the connections in the kernel's tables, the median of the valid windows.
    pub(crate) fn connections(&self) -> Option<u32> {
        let established = self.valid().filter_map(|(_, load)| load.connections.established).map(f64::from);
        median(established).map(|connections| connections.round() as u32)
    }

    /// Returns the number of failed calls.
    pub(crate) fn errors(&self) -> u64 {
        self.merged().map_or(0, LoadResult::error_count)
    }
}

/// Groups values by key, in the order in which each key first occurs.
pub(crate) fn grouped<T, K: PartialEq>(
    values: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for value in values {
        let key = key(&value);
        match groups.iter_mut().rev().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Returns each value once, in the order of first occurrence.
pub(crate) fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

/// Implements [`MergedCell::merged`].
fn merged(all: &[&PointResult]) -> Option<LoadResult> {
    let measured: Vec<&LoadResult> = all.iter().filter_map(|window| window.measured()).collect();
    let used: Vec<&LoadResult> = all.iter().filter_map(|window| window.valid()).collect();
    let (&first, rest) = used.split_first()?;
    let mut merged = first.clone();
    if measured.len() == 1 {
        return Some(merged);
    }
    merged.rate_per_s = geometric_mean(used.iter().map(|result| result.rate_per_s));
    merged.latency_ns = latency(&used);
    merged.pace_ns = pace(&used);
    // A histogram over all windows would contradict the merged percentiles.
    merged.histogram = Histogram::default();
    for result in rest {
        merged.duration_ns += result.duration_ns;
        merged.calls += result.calls;
        merged.messages += result.messages;
        merged.bytes_sent += result.bytes_sent;
        merged.bytes_received += result.bytes_received;
        merged.client_cpu = CpuTime {
            user_ns: merged.client_cpu.user_ns + result.client_cpu.user_ns,
            system_ns: merged.client_cpu.system_ns + result.client_cpu.system_ns,
        };
        merged.busy_poll_wasted_ns += result.busy_poll_wasted_ns;
        merged.spikes.extend(&result.spikes);
        merged.ended.clone_from(&result.ended);
        add_notes(&mut merged.notes, &result.notes);
    }
    merged.spikes.sort_by_key(|spike| std::cmp::Reverse(spike.took_ns));
    merged.spikes.truncate(SPIKES_MAX);
    merged.client_cpu_per_call = (merged.messages > 0).then(|| merged.client_cpu / merged.messages as f64);
    merged.errors.clear();
    for (code, count) in measured.iter().flat_map(|result| &result.errors) {
        *merged.errors.entry(code.clone()).or_default() += count;
    }
    Some(merged)
}

fn latency(results: &[&LoadResult]) -> Option<Latency> {
    let latencies: Vec<Latency> = results.iter().filter_map(|result| result.latency_ns).collect();
    let operations = results.iter().filter(|result| result.latency_ns.is_some()).map(|it| it.messages as f64);
    let total: f64 = operations.clone().sum();
    let weighted = latencies.iter().zip(operations).map(|(latency, count)| latency.mean * count);
    let percentile = |figure: fn(&Latency) -> u64| {
        median(latencies.iter().map(|latency| figure(latency) as f64)).map(|value| value.round() as u64)
    };
    Some(Latency {
        min: latencies.iter().map(|latency| latency.min).min()?,
        mean: weighted.sum::<f64>() / total.max(1.0),
        p50: percentile(|latency| latency.p50)?,
        p90: percentile(|latency| latency.p90)?,
        p95: median(latencies.iter().filter_map(|latency| latency.p95).map(|ns| ns as f64))
            .map(|ns| ns.round() as u64),
        p99: percentile(|latency| latency.p99)?,
        p99_9: percentile(|latency| latency.p99_9)?,
        p99_99: percentile(|latency| latency.p99_99)?,
        max: latencies.iter().map(|latency| latency.max).max()?,
    })
}

/// Merges paces with equal weights, since all windows have the same length.
fn pace(results: &[&LoadResult]) -> Option<Pace> {
    let paces = || results.iter().filter_map(|result| result.pace_ns);
    Some(Pace {
        mean: geometric_mean(paces().map(|pace| pace.mean)),
        gap_max: paces().map(|pace| pace.gap_max).max()?,
        messages_per_reading: paces().map(|pace| pace.messages_per_reading).max()?,
    })
}

/// Adds notes, treating those that differ only in their figures as equal.
fn add_notes(notes: &mut Vec<Note>, more: &[Note]) {
    for note in more {
        if !notes.iter().any(|known| without_figures(&known.text) == without_figures(&note.text)) {
            notes.push(note.clone());
        }
    }
}

/// Returns the text without digits, so that the same sentence matches across windows.
pub(super) fn without_figures(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_digit(), "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Outcome;

    fn sample() -> Vec<PointResult> {
        crate::tests::sample::sizes().tables.points
    }

    #[test]
    fn single_window_is_merged_unchanged() {
        let sample = sample();
        let gathered = gather_cells(&sample);
        assert_eq!(gathered.len(), sample.len());
        for (windows, result) in gathered.iter().zip(&sample) {
            assert_eq!(windows.merged(), result.measured());
        }
    }

    #[test]
    fn windows_of_a_point_are_merged_and_failures_counted() {
        let template = sample().swap_remove(0);
        let window = |round, edit: fn(&mut LoadResult)| {
            let mut window = template.clone();
            window.round = round;
            let Outcome::Measured(measured) = &mut window.outcome else { unreachable!("it is measured") };
            measured.rate_per_s = 100.0;
            measured.messages = 10;
            edit(measured);
            window
        };
        let failed = PointResult { outcome: Outcome::Failed("no server".to_owned()), ..window(3, |_| ()) };
        let windows = [
            window(0, |_| ()),
            window(1, |it| it.rate_per_s = 400.0),
            window(2, |it| {
                it.rate_per_s = 1e6;
                it.errors.insert("UNAVAILABLE".to_owned(), 3);
            }),
            failed,
        ];
        let gathered = gather_cells(&windows);
        assert_eq!((gathered.len(), gathered[0].all.len(), gathered[0].valid().count()), (1, 4, 2));
        let merged = gathered[0].merged().unwrap();
        assert!((merged.rate_per_s - 200.0).abs() < 1e-9);
        assert_eq!((merged.messages, merged.error_count()), (20, 3));
        assert_eq!(gathered[0].invalid_reasons(), "calls failed: 3 UNAVAILABLE; no server");
    }
}
