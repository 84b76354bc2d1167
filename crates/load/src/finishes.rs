//! The longest time in which no call finished.

use std::ops::Range;

/// Finish times of the calls of one or several threads: the first, the last, and the longest gap between them. All
/// times are ns of the run's clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finishes {
    ends: Option<Range<u64>>,
    gap: Range<u64>,
}

impl Finishes {
    /// Counts a call that finishes now. Calls of one thread are in order, up to a few ns.
    #[inline]
    pub(crate) fn record(&mut self, ended_ns: u64) {
        match &mut self.ends {
            None => self.ends = Some(ended_ns..ended_ns),
            Some(ends) => {
                if ended_ns.saturating_sub(ends.end) > length(&self.gap) {
                    self.gap = ends.end..ended_ns;
                }
                ends.end = ends.end.max(ended_ns);
            }
        }
    }

    /// Adds the calls of other threads. The common gap is the intersection of both gaps, a lower bound.
    pub(crate) fn merge(&mut self, other: &Self) {
        let (Some(own), Some(others)) = (&self.ends, &other.ends) else {
            if self.ends.is_none() {
                *self = other.clone();
            }
            return;
        };
        self.gap = intersection(&self.gap, &other.gap);
        self.ends = Some(own.start.min(others.start)..own.end.max(others.end));
    }

    /// Returns the longest time without a finished call in the window, in ns. 0 if no call finished.
    pub(crate) fn longest_gap_ns(&self, window: &Range<u64>) -> u64 {
        let Some(ends) = &self.ends else { return 0 };
        let (before, after) = (ends.start.saturating_sub(window.start), window.end.saturating_sub(ends.end));
        length(&self.gap).max(before).max(after)
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

fn intersection(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    let start = one.start.max(other.start);
    start..one.end.min(other.end).max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finishes(ended_ns: &[u64]) -> Finishes {
        let mut finishes = Finishes::default();
        for ns in ended_ns {
            finishes.record(*ns);
        }
        finishes
    }

    #[test]
    fn longest_gap_is_between_calls_or_at_an_end_of_the_window() {
        let check = |ended_ns: &[u64], expected| {
            assert_eq!(finishes(ended_ns).longest_gap_ns(&(0..100)), expected, "{ended_ns:?}");
        };
        check(&[], 0);
        check(&[10, 20, 70, 80, 99], 50);
        check(&[40, 50, 90], 40);
        check(&[10, 20, 30], 70);
        check(&[90, 95, 94, 96], 90);
    }

    #[test]
    fn gap_of_merged_threads_is_their_common_gap() {
        let check = |one: &[u64], other: &[u64], expected| {
            let mut both = finishes(one);
            both.merge(&finishes(other));
            assert_eq!(both.longest_gap_ns(&(0..100)), expected, "{one:?} {other:?}");
        };
        check(&[5, 20, 70, 100], &[8, 30, 75, 90], 40);
        check(&[5, 20, 70, 100], &[5, 50, 52, 95], 30);
        check(&[5, 45, 100], &[], 55);
        check(&[], &[5, 45, 100], 55);
        check(&[5, 10, 95], &[], 85);
        check(&[2, 40, 98], &[1, 5, 9, 50, 97], 47);
    }
}
