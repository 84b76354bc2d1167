//! Pace of stream messages in one direction, and the slowest operations.

use crate::traffic::TimedMessages;

/// Number of slowest operations kept with their time.
pub const SLOWEST_MAX: usize = 10;

/// Slowest operations, in descending order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slowest(Vec<Slow>);

/// A slow operation and its end, in ns of the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slow {
    pub(crate) took_ns: u64,
    pub(crate) ended_ns: u64,
}

impl Slowest {
    /// Records an operation. About `SLOWEST_MAX * ln(n)` of n operations are stored.
    #[inline]
    pub(crate) fn record(&mut self, took_ns: u64, ended_ns: u64) {
        if self.0.get(SLOWEST_MAX - 1).is_none_or(|least| took_ns > least.took_ns) {
            self.note(Slow { took_ns, ended_ns });
        }
    }

    #[cold]
    fn note(&mut self, slow: Slow) {
        let place = self.0.partition_point(|other| other.took_ns >= slow.took_ns);
        self.0.insert(place, slow);
        self.0.truncate(SLOWEST_MAX);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|slow| self.record(slow.took_ns, slow.ended_ns));
    }

    pub(crate) fn all(&self) -> &[Slow] {
        &self.0
    }
}

/// Pace of stream messages in one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paced {
    pub(crate) messages: u64,
    pub(crate) sum_ns: u128,
    pub(crate) gap_max_ns: u64,
    pub(crate) messages_per_reading: u64,
    pub(crate) slowest: Slowest,
}

impl Paced {
    pub(crate) fn record(&mut self, TimedMessages { took_ns, count }: TimedMessages, ended_ns: u64) {
        self.messages += count;
        self.sum_ns += u128::from(took_ns);
        self.gap_max_ns = self.gap_max_ns.max(took_ns);
        self.messages_per_reading = self.messages_per_reading.max(count);
        self.slowest.record(took_ns, ended_ns);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.messages += other.messages;
        self.sum_ns += other.sum_ns;
        self.gap_max_ns = self.gap_max_ns.max(other.gap_max_ns);
        self.messages_per_reading = self.messages_per_reading.max(other.messages_per_reading);
        self.slowest.merge(&other.slowest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowest_calls_are_kept_with_their_end_times() {
        let (mut even, mut odd, mut all) = (Slowest::default(), Slowest::default(), Slowest::default());
        for took_ns in 1..=5000 {
            if took_ns % 2 == 0 { &mut even } else { &mut odd }.record(took_ns, took_ns + 7);
            all.record(took_ns, took_ns + 7);
        }
        even.merge(&odd);
        assert_eq!(even.all(), all.all());
        assert_eq!(all.all()[..2], [5000, 4999].map(|took_ns| Slow { took_ns, ended_ns: took_ns + 7 }));
        assert_eq!(all.all().len(), SLOWEST_MAX);
    }

    #[test]
    fn one_way_messages_have_largest_gap() {
        let (mut paced, mut other) = (Paced::default(), Paced::default());
        paced.record(TimedMessages { took_ns: 320, count: 16 }, 400);
        other.record(TimedMessages { took_ns: 5000, count: 15 }, 9000);
        paced.merge(&other);
        let Paced { messages, sum_ns, gap_max_ns, messages_per_reading, slowest } = paced;
        assert_eq!((messages, sum_ns, gap_max_ns, messages_per_reading), (31, 5320, 5000, 16));
        assert_eq!(slowest.all().iter().map(|slow| slow.took_ns).collect::<Vec<_>>(), [5000, 320]);
    }
}
