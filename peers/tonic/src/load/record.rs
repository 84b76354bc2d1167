//! Counts and times operations in constant memory.

use std::collections::BTreeMap;
use std::time::Instant;

use hdrhistogram::Histogram;
use serde::Serialize;
use tonic::Code;

/// Longer latencies are counted as this value (one hour, in ns).
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// Number of largest latencies kept with their time.
const SPIKES_MAX: usize = 10;

/// Records of the workers of one thread.
#[derive(Clone)]
pub struct Recorder {
    /// Start of the measured time.
    started: Instant,
    pub latencies: Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
    paced: Paced,
    /// Calls that ended with OK.
    pub calls: u64,
    /// Other calls, by the canonical name of their status.
    pub errors: BTreeMap<&'static str, u64>,
    /// Largest first.
    pub spikes: Vec<Spike>,
}

/// Messages of one-way streams.
#[derive(Clone, Copy, Default)]
struct Paced {
    messages: u64,
    sum_ns: u128,
    gap_max_ns: u64,
    messages_per_reading: u64,
}

/// Intervals between messages of one-way streams, in ns.
#[derive(Debug, PartialEq, Serialize)]
pub struct Pace {
    pub mean: f64,
    pub gap_max: u64,
    pub messages_per_reading: u64,
}

/// A large latency or gap, and when it ended, since the start of the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spike {
    pub took_ns: u64,
    pub at_ns: u64,
}

/// A distribution of latencies in ns; `min`, `mean` and `max` are exact.
#[derive(Debug, PartialEq, Serialize)]
pub struct Latency {
    pub min: u64,
    pub mean: f64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub p99_99: u64,
    pub max: u64,
}

impl Recorder {
    pub fn starting_at(started: Instant) -> Self {
        Self {
            started,
            latencies: Histogram::new_with_bounds(1, LATENCY_NS_MAX, SIGNIFICANT_DIGITS)
                .expect("the bounds are constants within range"),
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
            paced: Paced::default(),
            calls: 0,
            errors: BTreeMap::new(),
            spikes: Vec::new(),
        }
    }

    /// Records `count` operations of `latency_ns` each.
    #[inline]
    pub fn record(&mut self, latency_ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.latencies.saturating_record_n(latency_ns, count);
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
        self.sum_ns += u128::from(latency_ns) * u128::from(count);
        self.note_spike(latency_ns);
    }

    /// Records `count` messages of a one-way stream in `elapsed_ns`, between two readings of the clock.
    #[inline]
    pub fn record_pace(&mut self, elapsed_ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.paced.messages += count;
        self.paced.sum_ns += u128::from(elapsed_ns);
        self.paced.gap_max_ns = self.paced.gap_max_ns.max(elapsed_ns);
        self.paced.messages_per_reading = self.paced.messages_per_reading.max(count);
        self.note_spike(elapsed_ns);
    }

    #[inline]
    fn note_spike(&mut self, took_ns: u64) {
        if self.spikes.len() < SPIKES_MAX || took_ns > self.spikes[SPIKES_MAX - 1].took_ns {
            self.spike(Spike { took_ns, at_ns: self.started.elapsed().as_nanos() as u64 });
        }
    }

    pub fn error(&mut self, code: Code) {
        *self.errors.entry(code_name(code)).or_default() += 1;
    }

    pub fn operations(&self) -> u64 {
        self.latencies.len() + self.paced.messages
    }

    pub fn merge(&mut self, other: &Self) {
        self.latencies += &other.latencies;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
        self.paced.messages += other.paced.messages;
        self.paced.sum_ns += other.paced.sum_ns;
        self.paced.gap_max_ns = self.paced.gap_max_ns.max(other.paced.gap_max_ns);
        self.paced.messages_per_reading =
            self.paced.messages_per_reading.max(other.paced.messages_per_reading);
        self.calls += other.calls;
        for (name, count) in &other.errors {
            *self.errors.entry(name).or_default() += count;
        }
        for &spike in &other.spikes {
            self.spike(spike);
        }
    }

    /// Returns `None` without messages of one-way streams.
    pub fn pace(&self) -> Option<Pace> {
        let Paced { messages, sum_ns, gap_max_ns, messages_per_reading } = self.paced;
        (messages > 0).then(|| Pace {
            mean: sum_ns as f64 / messages as f64,
            gap_max: gap_max_ns,
            messages_per_reading,
        })
    }

    /// Returns `None` without a successful operation that has a latency.
    pub fn latency(&self) -> Option<Latency> {
        let percentile =
            |percentile| self.latencies.value_at_percentile(percentile).clamp(self.min_ns, self.max_ns);
        (!self.latencies.is_empty()).then(|| Latency {
            min: self.min_ns,
            mean: self.sum_ns as f64 / self.latencies.len() as f64,
            p50: percentile(50.0),
            p90: percentile(90.0),
            p99: percentile(99.0),
            p99_9: percentile(99.9),
            p99_99: percentile(99.99),
            max: self.max_ns,
        })
    }

    fn spike(&mut self, spike: Spike) {
        let index = self.spikes.partition_point(|other| other.took_ns >= spike.took_ns);
        self.spikes.insert(index, spike);
        self.spikes.truncate(SPIKES_MAX);
    }
}

/// Returns the canonical name of a status code.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_recorders_equal_one_recorder() {
        let started = Instant::now();
        let mut recorders = [(); 3].map(|()| Recorder::starting_at(started));
        for latency_ns in 1..=1000 {
            recorders[latency_ns as usize % 2].record(latency_ns * 10, 1);
            recorders[2].record(latency_ns * 10, 1);
        }
        recorders.iter_mut().skip(1).for_each(|recorder| recorder.error(Code::Unavailable));
        let [mut even, odd, all] = recorders;
        even.merge(&odd);
        assert_eq!((even.latency(), &even.errors), (all.latency(), &all.errors));
        let largest = |recorder: &Recorder| recorder.spikes.iter().map(|spike| spike.took_ns).max();
        assert_eq!(largest(&even), Some(10_000));
        assert_eq!(even.spikes.len(), SPIKES_MAX);
    }

    #[test]
    fn one_way_messages_have_pace_but_no_latency() {
        let mut recorder = Recorder::starting_at(Instant::now());
        for (elapsed_ns, count) in [(320, 16), (0, 0), (5000, 16)] {
            recorder.record_pace(elapsed_ns, count);
        }
        assert_eq!((recorder.operations(), recorder.latency()), (32, None));
        let pace = Pace { mean: 166.25, gap_max: 5000, messages_per_reading: 16 };
        assert_eq!(recorder.pace(), Some(pace));
    }
}
