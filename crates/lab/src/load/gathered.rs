//! Windows that measured the same thing, put together.

use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::distribution::Latency;
use thalweg_measure::histogram::Histogram;
use thalweg_measure::statistics::{geometric_mean, median};

use super::point::Point;
use super::results::PointResult;
use crate::record::{LoadResult, Note, Pace, SPIKES_MAX};
use crate::stack::Pair;

/// All windows of one pair, or of a bare socket, at one point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Windows<'a> {
    /// What was asked of each.
    pub(crate) point: &'a Point,
    /// Whose client and server; `None` for a bare socket.
    pub(crate) pair: Option<&'a Pair>,
    /// In the order of measuring; at least one.
    pub(crate) all: Vec<&'a PointResult>,
}

/// Gathers windows of the same point, pair and way to come by connections, in the order in which the first of each was
/// measured.
pub(crate) fn gathered<'a>(results: impl IntoIterator<Item = &'a PointResult>) -> Vec<Windows<'a>> {
    let mut gathered: Vec<Windows<'a>> = Vec::new();
    for result in results {
        let same = |windows: &&mut Windows<'_>| {
            windows.pair == result.pair.as_ref()
                && *windows.point == result.point
                && windows.all.first().is_some_and(|first| first.strategy == result.strategy)
        };
        match gathered.iter_mut().rev().find(same) {
            Some(windows) => windows.all.push(result),
            None => {
                gathered.push(Windows {
                    point: &result.point,
                    pair: result.pair.as_ref(),
                    all: vec![result],
                });
            }
        }
    }
    gathered
}

impl<'a> Windows<'a> {
    /// Those whose figures may be used.
    pub(crate) fn valid(&self) -> impl Iterator<Item = (&'a PointResult, &'a LoadResult)> {
        self.all.iter().filter_map(|&window| Some((window, window.valid()?)))
    }

    /// Why windows are not valid, each reason once.
    pub(crate) fn why_not(&self) -> String {
        let mut reasons: Vec<String> = self.all.iter().filter_map(|window| window.why_not()).collect();
        reasons.dedup_by(|a, b| without_figures(a) == without_figures(b));
        reasons.join("; ")
    }

    /// The valid windows as one result. `None` when none is valid.
    ///
    /// The rate is their geometric mean, as ratios are; percentiles are the medians of the windows' percentiles;
    /// minimum and maximum are those of all; what is counted is added up. Errors of windows that are left out are
    /// counted too.
    pub(crate) fn merged(&self) -> Option<LoadResult> {
        let measured: Vec<&LoadResult> = self.all.iter().filter_map(|window| window.measured()).collect();
        let used: Vec<&LoadResult> = self.valid().map(|(_, result)| result).collect();
        let (&first, rest) = used.split_first()?;
        let mut merged = first.clone();
        if measured.len() == 1 {
            return Some(merged);
        }
        merged.rate_per_s = geometric_mean(used.iter().map(|result| result.rate_per_s));
        merged.latency_ns = latency(&used);
        merged.pace_ns = pace(&used);
        // A distribution of all windows would say something else than the percentiles beside it.
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
            merged.looked_in_vain_ns += result.looked_in_vain_ns;
            merged.spikes.extend(&result.spikes);
            merged.ended.clone_from(&result.ended);
            add_notes(&mut merged.notes, &result.notes);
        }
        merged.spikes.sort_by_key(|spike| std::cmp::Reverse(spike.took_ns));
        merged.spikes.truncate(SPIKES_MAX);
        merged.client_cpu_per_call =
            (merged.messages > 0).then(|| merged.client_cpu / merged.messages as f64);
        merged.errors.clear();
        for (code, count) in measured.iter().flat_map(|result| &result.errors) {
            *merged.errors.entry(code.clone()).or_default() += count;
        }
        Some(merged)
    }
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

/// Of windows of the same length each counts alike.
fn pace(results: &[&LoadResult]) -> Option<Pace> {
    let paces = || results.iter().filter_map(|result| result.pace_ns);
    Some(Pace {
        mean: geometric_mean(paces().map(|pace| pace.mean)),
        gap_max: paces().map(|pace| pace.gap_max).max()?,
        messages_per_reading: paces().map(|pace| pace.messages_per_reading).max()?,
    })
}

/// Notes that differ in their figures only are one.
fn add_notes(notes: &mut Vec<Note>, more: &[Note]) {
    for note in more {
        if !notes.iter().any(|known| without_figures(&known.text) == without_figures(&note.text)) {
            notes.push(note.clone());
        }
    }
}

/// What of a sentence is alike in many windows.
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
    fn a_single_window_is_its_own_result() {
        let sample = sample();
        let gathered = gathered(&sample);
        assert_eq!(gathered.len(), sample.len());
        for (windows, result) in gathered.iter().zip(&sample) {
            assert_eq!(windows.merged().as_ref(), result.measured());
        }
    }

    #[test]
    fn windows_of_one_point_are_one_result_and_failing_ones_are_counted() {
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
        let gathered = gathered(&windows);
        assert_eq!((gathered.len(), gathered[0].all.len(), gathered[0].valid().count()), (1, 4, 2));
        let merged = gathered[0].merged().unwrap();
        assert!((merged.rate_per_s - 200.0).abs() < 1e-9);
        assert_eq!((merged.messages, merged.error_count()), (20, 3));
        assert_eq!(gathered[0].why_not(), "calls failed: 3 UNAVAILABLE; no server");
    }
}
