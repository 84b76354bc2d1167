//! Statistics of a link.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Statistics of a link since its start, or since the last [reset](crate::Link::reset_stats).
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// `thalweg.link/1`.
    pub schema: &'static str,
    /// Listening address.
    pub listen: String,
    /// Server address.
    pub to: String,
    /// One-way delay.
    pub delay_ns: u64,
    /// Jitter, in the syntax of [`Jitter`](crate::Jitter).
    pub jitter: String,
    /// Rate per direction; `null` if unlimited.
    pub rate_bytes_per_s: Option<u64>,
    /// Maximum bytes in transit in a direction of a connection.
    pub buffer_bytes: u64,
    /// Length of the measured window.
    pub window_ns: u64,
    /// Whether the link is stalled.
    pub stalled: bool,
    /// Whether new connections are refused.
    pub refusing: bool,
    /// Connections by outcome.
    pub connections: ConnectionCounts,
    /// Bytes from the link's clients to the server.
    pub up: DirectionStats,
    /// Bytes from the server to the clients.
    pub down: DirectionStats,
    /// Lateness of chunks: from the release time to the end of the write that passed the last byte to the kernel.
    /// Excludes stalls and waits for a receiver that does not read.
    pub lateness_ns: Distribution,
    /// Time with nothing in transit, in any direction of any connection.
    pub wire: Idle,
    /// The same for each connection separately, summed over all connections and the time that they were open.
    pub per_connection: Idle,
    /// Usage of the link's thread.
    pub thread: Thread,
    /// Last error of opening a connection.
    pub last_error: Option<String>,
}

/// Connections by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConnectionCounts {
    /// Currently open, including half-open ones after a silent cut.
    pub open: u64,
    /// Accepted.
    pub accepted: u64,
    /// Accepted, but the server could not be reached.
    pub failed: u64,
    /// Ended by both sides.
    pub ended: u64,
    /// Reset by one side, and therefore for the other.
    pub reset: u64,
    /// Cut by the link.
    pub cut: u64,
}

/// Statistics of one direction, over all connections.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DirectionStats {
    /// Bytes received.
    pub bytes: u64,
    /// Reads that received them.
    pub chunks: u64,
    /// Writes that forwarded them.
    pub writes: u64,
    /// Maximum bytes in transit on one connection.
    pub buffered_bytes_max: u64,
    /// Time with nothing in transit in this direction.
    pub idle: Idle,
}

/// Time with nothing in transit.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Idle {
    /// Total length of gaps, including the current one.
    pub idle_ns: u64,
    /// Total as a share of the window.
    pub idle_share: f64,
    /// Lengths of completed gaps, from the last byte forwarded to the next arrival.
    pub gaps_ns: Distribution,
}

/// Usage of the link's thread. A thread that was busy most of the time limited the measurement.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Thread {
    /// CPU time.
    pub cpu_ns: u64,
    /// Share of the window in which it did not sleep (it may have waited for a CPU).
    pub busy_share: f64,
}

/// Distribution of times in ns, with a precision of 1 %.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Distribution {
    /// Number of values; all other fields are 0 if it is 0.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    /// Maximum.
    pub max: u64,
    /// Buckets as pairs of upper bound and count. The first bound is 1 µs, each further one 25 % higher. Empty buckets
    /// are omitted.
    pub buckets: Vec<(u64, u64)>,
}

const FIRST_BUCKET_NS: u64 = 1000;
const BUCKET_GROWTH: f64 = 1.25;

impl Distribution {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let at = |quantile: f64| histogram.value_at_quantile(quantile);
        let buckets = histogram.iter_log(FIRST_BUCKET_NS, BUCKET_GROWTH);
        let buckets = buckets.map(|step| (step.value_iterated_to(), step.count_since_last_iteration()));
        Self {
            count: histogram.len(),
            mean: histogram.mean(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: histogram.max(),
            buckets: buckets.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_all_values() {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 2).unwrap();
        let values: Vec<u64> = (0..1000).map(|index| 100 + index * index * 37).collect();
        for value in &values {
            histogram.record(*value).unwrap();
        }
        let distribution = Distribution::of(&histogram);
        assert_eq!(distribution.buckets.iter().map(|(_, count)| count).sum::<u64>(), 1000);
        assert!(distribution.buckets.is_sorted_by(|(one, _), (other, _)| one < other));
        for (bound, upto) in [(0.5, distribution.p50), (0.99, distribution.p99)] {
            let exact = values[(bound * 1000.0) as usize - 1];
            assert!(upto.abs_diff(exact) <= exact / 50, "{bound}: {upto}, not {exact}");
        }
        assert_eq!(Distribution::of(&Histogram::new(2).unwrap()), Distribution::default());
    }
}
