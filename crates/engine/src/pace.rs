//! The least rate at which a peer has to take what waits for it: [`Pace`].

use std::time::Duration;

use tokio::time::Instant;

/// A peer that takes, or sends, so many bytes a second keeps pace.
pub(crate) const BYTES_PER_S: u64 = 1024;

/// How far a peer is behind the least rate, 1 KiB a second, at which it has to take what waits for it.
///
/// Time counts while something waits. Each KiB that the peer takes makes up for a second of it, so that a byte now and
/// then does not start the time again; but no more than has passed, so that a peer that has taken much can't rest on
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    behind: Duration,
    since: Option<Instant>,
}

impl Pace {
    /// Something waits for the peer.
    pub fn waits(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// The peer has taken `len` bytes.
    pub fn took(&mut self, len: u64, now: Instant) {
        let waited = self.since.take().map_or(Duration::ZERO, |since| now - since);
        let made_up = Duration::from_millis(len.saturating_mul(1000) / BYTES_PER_S);
        self.behind = (self.behind + waited).saturating_sub(made_up);
    }

    /// When the peer will be `grace` behind if it takes nothing until then. `None` while nothing waits for it.
    pub fn ends(&self, grace: Duration) -> Option<Instant> {
        self.since?.checked_add(grace.saturating_sub(self.behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(60);

    /// In how many seconds a peer is cut off that takes `len` bytes each `period` seconds, within two hours.
    fn cut_after(len: u64, period: u64) -> Option<u64> {
        let began = Instant::now();
        let mut pace = Pace::default();
        pace.waits(began);
        (1..7200 / period).map(|nth| nth * period).find(|at| {
            let now = began + Duration::from_secs(*at);
            let is_over = pace.ends(GRACE).is_some_and(|ends| ends <= now);
            pace.took(len, now);
            pace.waits(now);
            is_over
        })
    }

    #[test]
    fn trickles_are_cut_and_slow_peers_are_not() {
        assert_eq!(cut_after(0, 1), Some(60));
        assert_eq!(cut_after(1, 10), Some(60));
        assert_eq!(cut_after(512, 1), Some(119), "half the rate, twice the time");
        assert_eq!(cut_after(1024, 1), None);
        assert_eq!(cut_after(50 << 10, 50), None, "in bursts");
        assert_eq!(cut_after(4 << 20, 70), Some(70), "what was taken before is no reason to rest");
    }

    #[test]
    fn no_rate_is_demanded_while_nothing_waits() {
        let began = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.ends(GRACE), None);
        pace.waits(began);
        pace.took(1, began + Duration::from_secs(59));
        assert_eq!(pace.ends(GRACE), None, "all was taken");
    }
}
