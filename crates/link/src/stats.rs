//! What a link has done, as values.

use hdrhistogram::Histogram;
use serde::Serialize;

/// What a link has done since it started, or since it was last told to [reset](crate::Link::reset_stats).
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// `thalweg.link/1`.
    pub schema: &'static str,
    /// Where it listens.
    pub listen: String,
    /// Where it leads.
    pub to: String,
    /// One-way time.
    pub delay_ns: u64,
    /// As it can be written in [`Jitter`](crate::Jitter).
    pub jitter: String,
    /// Per direction; `null` is no limit.
    pub rate_bytes_per_s: Option<u64>,
    /// What a direction of a connection may have under way.
    pub buffer_bytes: u64,
    /// For how long was counted.
    pub window_ns: u64,
    /// Nothing moves now.
    pub stalled: bool,
    /// New connections are refused now.
    pub refusing: bool,
    /// What became of connections.
    pub connections: ConnectionCounts,
    /// From those who connected to the link.
    pub up: DirectionStats,
    /// Back to them.
    pub down: DirectionStats,
    /// How much later than asked chunks left: from the time at which a chunk should have left to the end of the write
    /// that handed its last byte to the kernel. Waiting for a receiver that does not read, and stalls, are not counted.
    pub lateness_ns: Distribution,
    /// When nothing was under way, in no direction of no connection.
    pub wire: Idle,
    /// The same of each connection by itself, added up over the connections and the time that they were open.
    pub per_connection: Idle,
    /// What the link's thread took.
    pub thread: Thread,
    /// Why a connection could not be opened, the last time that it happened.
    pub last_error: Option<String>,
}

/// What became of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionCounts {
    /// There now, half-open ones after a silent cut included.
    pub open: u64,
    /// Accepted.
    pub accepted: u64,
    /// Accepted, and the other end could not be reached.
    pub failed: u64,
    /// Ended by both sides, one after the other.
    pub ended: u64,
    /// Reset by one side, and therefore for the other.
    pub reset: u64,
    /// Cut by the link.
    pub cut: u64,
}

/// One direction of all connections.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionStats {
    /// That came in.
    pub bytes: u64,
    /// Reads that brought them.
    pub chunks: u64,
    /// Writes that took them out.
    pub writes: u64,
    /// The most that one connection had under way.
    pub buffered_bytes_max: u64,
    /// When nothing was under way in this direction.
    pub idle: Idle,
}

/// When nothing was under way.
#[derive(Clone, Debug, Serialize)]
pub struct Idle {
    /// The gaps together, with the one that goes on.
    pub idle_ns: u64,
    /// As a share of the window.
    pub idle_share: f64,
    /// From the last byte handed on until the next came. Only gaps that have ended.
    pub gaps_ns: Distribution,
}

/// What the link's thread took. One that was busy most of the time was the limit of whatever was measured through it.
#[derive(Clone, Debug, Serialize)]
pub struct Thread {
    /// Processor time.
    pub cpu_ns: u64,
    /// The share of the window in which it did not sleep (but may have waited for a processor).
    pub busy_share: f64,
}

/// How times are distributed, ns, to 1 %.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// How many there are; the rest is 0 when there are none.
    pub count: u64,
    /// All together divided by how many.
    pub mean: f64,
    /// Half of them are no longer.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    /// The longest.
    pub max: u64,
    /// How many are no longer than that and longer than the one before. Each bound is a quarter more than the last; the
    /// first is 1 µs; those without any are left out.
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
    fn buckets_hold_everything() {
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
