//! Limits of the replay buffer: the bytes of sent messages that calls keep for further attempts (gRFC A6, "Memory
//! Management").

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Default limit of a call's replay buffer in bytes: 256 KiB, as in gRPC Go and C++.
pub const CALL_REPLAY_BYTES_MAX: usize = 256 << 10;
/// Default limit of a channel's replay buffers in bytes: 16 MiB, as in gRPC Java.
pub const CHANNEL_REPLAY_BYTES_MAX: usize = 16 << 20;

/// Accounts the replay buffers of all calls of a channel.
#[derive(Debug)]
pub struct ReplayBudget {
    buffered: AtomicUsize,
    call_bytes_max: usize,
    channel_bytes_max: usize,
}

/// Accounts the replay buffer of one call. Dropping it releases its bytes.
#[derive(Debug)]
pub struct ReplayAccount {
    budget: Arc<ReplayBudget>,
    buffered: usize,
    bytes_max: usize,
}

impl ReplayBudget {
    /// Creates an empty budget with the default limits.
    pub fn new() -> Self {
        Self::with_limits(CALL_REPLAY_BYTES_MAX, CHANNEL_REPLAY_BYTES_MAX)
    }

    /// Creates an empty budget with these limits in bytes. 0 commits each call at its first message.
    pub fn with_limits(call_bytes_max: usize, channel_bytes_max: usize) -> Self {
        Self { buffered: AtomicUsize::new(0), call_bytes_max, channel_bytes_max }
    }

    /// Returns the bytes that all calls have buffered.
    pub fn buffered(&self) -> usize {
        self.buffered.load(Ordering::Relaxed)
    }
}

impl Default for ReplayBudget {
    fn default() -> Self {
        Self::new()
    }
}

impl ReplayAccount {
    /// Creates the account of a call that has buffered nothing.
    pub fn new(budget: Arc<ReplayBudget>) -> Self {
        Self { bytes_max: budget.call_bytes_max, budget, buffered: 0 }
    }

    /// Sets the call's limit in bytes, in place of the channel's setting for each call.
    #[must_use]
    pub fn limit(mut self, bytes_max: usize) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// Adds a message of this size. Returns `false` and adds nothing if that exceeds the call's or the channel's limit:
    /// the call commits, and sends the message without buffering it.
    #[must_use]
    pub fn add(&mut self, bytes: usize) -> bool {
        let budget = &*self.budget;
        let sum = |buffered: usize, max: usize| buffered.checked_add(bytes).filter(|&sum| sum <= max);
        let Some(buffered) = sum(self.buffered, self.bytes_max) else { return false };
        let add = |buffered| sum(buffered, budget.channel_bytes_max);
        let is_added = budget.buffered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        if is_added {
            self.buffered = buffered;
        }
        is_added
    }

    /// Releases bytes, at most all, when a committed call has sent the messages.
    pub fn release(&mut self, bytes: usize) {
        let released = bytes.min(self.buffered);
        self.buffered -= released;
        self.budget.buffered.fetch_sub(released, Ordering::Relaxed);
    }

    /// Returns the bytes that the call has buffered.
    pub fn buffered(&self) -> usize {
        self.buffered
    }
}

impl Drop for ReplayAccount {
    fn drop(&mut self) {
        self.release(self.buffered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::mix;

    /// Adds the sizes to accounts by position, and compares the results and the channel's sum.
    fn check(budget: ReplayBudget, adds: &[(usize, usize, bool)], expected: usize) {
        let budget = Arc::new(budget);
        let mut calls = [(); 3].map(|()| ReplayAccount::new(Arc::clone(&budget)));
        for &(call, bytes, is_added) in adds {
            assert_eq!(calls[call].add(bytes), is_added, "{bytes} bytes of call {call} in {adds:?}");
        }
        assert_eq!(budget.buffered(), expected, "{adds:?}");
        assert_eq!(calls.iter().map(ReplayAccount::buffered).sum::<usize>(), expected, "{adds:?}");
        drop(calls);
        assert_eq!(budget.buffered(), 0);
    }

    #[test]
    fn message_beyond_a_limit_is_not_added() {
        // grpc-go's test: a payload of 500 bytes with a buffer of 200.
        check(ReplayBudget::with_limits(200, 1000), &[(0, 500, false), (0, 200, true), (0, 1, false)], 200);
        check(ReplayBudget::with_limits(100, 150), &[(0, 100, true), (1, 51, false), (1, 50, true)], 150);
        check(ReplayBudget::with_limits(100, 150), &[(0, 100, true), (1, 50, true), (2, 1, false)], 150);
        check(ReplayBudget::with_limits(0, 100), &[(0, 0, true), (0, 1, false)], 0);
        let endless = usize::MAX;
        check(ReplayBudget::with_limits(endless, endless), &[(0, 5, true), (0, endless, false)], 5);
    }

    #[test]
    fn default_limits_are_256_kib_and_16_mib() {
        let call = [(0, 262_144, true), (0, 1, false)];
        check(ReplayBudget::new(), &call, 262_144);
        let budget = Arc::new(ReplayBudget::default());
        let mut calls: Vec<_> = (0..65).map(|_| ReplayAccount::new(Arc::clone(&budget))).collect();
        let added = calls.iter_mut().filter_map(|call| call.add(262_144).then_some(())).count();
        assert_eq!((added, budget.buffered()), (64, 16_777_216));
    }

    #[test]
    fn released_bytes_are_free_for_other_calls() {
        let budget = Arc::new(ReplayBudget::with_limits(100, 100));
        let [mut first, mut second] = [(); 2].map(|()| ReplayAccount::new(Arc::clone(&budget)));
        assert!(first.add(100) && !second.add(1));
        first.release(30);
        assert!(second.add(30) && !second.add(1));
        first.release(usize::MAX);
        assert_eq!((first.buffered(), budget.buffered()), (0, 30));
        assert!(second.add(70));
    }

    #[test]
    fn channel_has_the_sum_of_its_calls_for_all_seeds() {
        for seed in 0..2000 {
            let mut random = seed;
            let mut draw = |bound: usize| {
                random = mix(random);
                (random % bound as u64) as usize
            };
            let (call_max, channel_max) = (draw(100), draw(300));
            let budget = Arc::new(ReplayBudget::with_limits(call_max, channel_max));
            let mut calls = [(); 5].map(|()| ReplayAccount::new(Arc::clone(&budget)));
            for _ in 0..100 {
                let (call, bytes) = (draw(5), draw(60));
                match draw(8) {
                    0 => calls[call] = ReplayAccount::new(Arc::clone(&budget)),
                    1 | 2 => calls[call].release(bytes),
                    _ => {
                        let fits = calls[call].buffered() + bytes <= call_max
                            && budget.buffered() + bytes <= channel_max;
                        assert_eq!(calls[call].add(bytes), fits, "seed {seed}");
                    }
                }
                let sum: usize = calls.iter().map(ReplayAccount::buffered).sum();
                assert_eq!(sum, budget.buffered(), "seed {seed}");
            }
        }
    }
}
