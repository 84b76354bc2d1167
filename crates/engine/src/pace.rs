//! Minimum rate at which a peer has to receive data: [`Pace`].

use std::time::Duration;

use tokio::time::Instant;

/// Minimum rate of a peer that receives or sends data, in bytes per second.
pub(crate) const BYTES_PER_S: u64 = 1024;

/// Time by which a peer lags behind the minimum rate of 1 KiB per second.
///
/// The lag grows while data waits for the peer. Each KiB received reduces it by a second, so single bytes do not reset
/// it. It never falls below zero, so a fast peer gains no credit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    behind: Duration,
    since: Option<Instant>,
}

impl Pace {
    /// Reports that data waits for the peer.
    pub fn waits(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Reports that the peer has received `len` bytes.
    pub fn took(&mut self, len: u64, now: Instant) {
        let waited = self.since.take().map_or(Duration::ZERO, |since| now - since);
        let made_up = Duration::from_millis(len.saturating_mul(1000) / BYTES_PER_S);
        self.behind = (self.behind + waited).saturating_sub(made_up);
    }

    /// Returns when the lag reaches `grace` if the peer receives nothing until then. `None` while no data waits.
    pub fn ends(&self, grace: Duration) -> Option<Instant> {
        self.since?.checked_add(grace.saturating_sub(self.behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(60);

    /// Returns after how many seconds, up to two hours, a peer that receives `len` bytes every `period` seconds times
    /// out.
    fn cut_after(len: u64, period: u64) -> Option<u64> {
        let started_at = Instant::now();
        let mut pace = Pace::default();
        pace.waits(started_at);
        (1..7200 / period).map(|nth| nth * period).find(|at| {
            let now = started_at + Duration::from_secs(*at);
            let is_over = pace.ends(GRACE).is_some_and(|ends| ends <= now);
            pace.took(len, now);
            pace.waits(now);
            is_over
        })
    }

    #[test]
    fn trickling_peer_is_cut_off_and_slow_peer_is_not() {
        assert_eq!(cut_after(0, 1), Some(60));
        assert_eq!(cut_after(1, 10), Some(60));
        assert_eq!(cut_after(512, 1), Some(119), "half the rate, twice the time");
        assert_eq!(cut_after(1024, 1), None);
        assert_eq!(cut_after(50 << 10, 50), None, "in bursts");
        assert_eq!(cut_after(4 << 20, 70), Some(70), "what was taken before is no reason to rest");
    }

    #[test]
    fn no_rate_is_demanded_while_nothing_waits() {
        let started_at = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.ends(GRACE), None);
        pace.waits(started_at);
        pace.took(1, started_at + Duration::from_secs(59));
        assert_eq!(pace.ends(GRACE), None, "all was taken");
    }
}
