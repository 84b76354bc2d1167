//! Merging of the intervals of several runs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use crate::run::{Interval, LoadRun, RunNote};

/// A common interval length is searched up to this multiple of the longest one.
const LONGEST_MAX: u64 = 10;
/// Intervals form a longer one if the remainder is at most this share of it.
const LEFT_OVER_MAX: f64 = 1e-3;

/// Merged intervals of several runs.
#[derive(Debug)]
pub(super) struct OverTime {
    pub(super) interval_ns: u64,
    pub(super) intervals: Vec<Interval>,
    /// Note if intervals of some run straddle two merged ones.
    pub(super) note: Option<RunNote>,
}

/// Merges intervals of the same time. If the runs' interval lengths differ, each run's intervals are first merged to
/// the shortest common multiple. If there is none, the longest length is used, and an interval counts in the one that
/// contains its middle.
pub(super) fn over_time(runs: &[LoadRun]) -> OverTime {
    let lengths: Vec<u64> = runs.iter().map(|run| run.interval_ns.max(1)).collect();
    let longest = lengths.iter().copied().max().unwrap_or(1);
    let common = common_length(&lengths, longest);
    let interval_ns = common.unwrap_or(longest);
    let mut by_place: BTreeMap<u64, Interval> = BTreeMap::new();
    for (place, interval) in runs.iter().flat_map(|run| widened(run, interval_ns)) {
        match by_place.entry(place) {
            Entry::Occupied(mut all) => all.get_mut().merge_concurrent(&interval),
            Entry::Vacant(place) => _ = place.insert(interval),
        }
    }
    let note = common.is_none().then(|| RunNote::new(apart(lengths)));
    OverTime { interval_ns, intervals: by_place.into_values().collect(), note }
}

/// Returns the shortest multiple of the longest length that is a multiple of each.
fn common_length(lengths: &[u64], longest: u64) -> Option<u64> {
    let is_multiple = |of: u64, long: u64| {
        let count = (long as f64 / of as f64).round();
        (long as f64 - count * of as f64).abs() <= LEFT_OVER_MAX * long as f64
    };
    let multiples = (1..=LONGEST_MAX).filter_map(|count| longest.checked_mul(count));
    multiples.into_iter().find(|long| lengths.iter().all(|length| is_multiple(*length, *long)))
}

/// Returns the intervals of a run, merged to this length, by index. The end state of a merged interval is that of its
/// last part.
fn widened(run: &LoadRun, length_ns: u64) -> BTreeMap<u64, Interval> {
    let mut by_place: BTreeMap<u64, Interval> = BTreeMap::new();
    for interval in &run.intervals {
        // Ticks may be late, but the middle stays within the same interval.
        let place = interval.at_ns.saturating_add(run.interval_ns / 2) / length_ns;
        match by_place.entry(place) {
            Entry::Occupied(mut all) => all.get_mut().append(interval),
            Entry::Vacant(vacant) => {
                vacant.insert(Interval { at_ns: place * length_ns, ..interval.clone() });
            }
        }
    }
    by_place
}

fn apart(mut lengths: Vec<u64>) -> String {
    lengths.sort_unstable();
    lengths.dedup();
    let named = |ns: &u64| humantime::format_duration(Duration::from_nanos(*ns)).to_string();
    let named: Vec<String> = lengths.iter().map(named).collect();
    format!(
        "the runs have intervals of {}, which are not multiples of each other; each interval is counted in the {} \
         interval that contains its middle",
        named.join(" and "),
        named.last().map_or("", String::as_str)
    )
}
