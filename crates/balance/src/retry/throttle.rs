//! Throttling: a channel whose calls fail too often makes no further attempts (gRFC A6).

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::service_config::RetryThrottling;

/// The token bucket of a channel. Without a configuration it allows all attempts.
///
/// A failed attempt takes one token, a successful call adds `tokenRatio`. Further attempts start only while more than
/// half of the tokens are left.
///
/// All methods are lock-free. While all calls succeed the bucket is full, and a call only reads it.
#[derive(Default)]
pub struct Throttle(AtomicU64);

/// Contents of the bucket, in thousandths of tokens: each at most 1,000,000, which 20 bits hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TokenBucket {
    tokens: u64,
    /// 0 without a configuration.
    max: u64,
    ratio: u64,
}

/// Maximum of `maxTokens` (gRFC A6).
const MAX_TOKENS: u32 = 1000;
const TOKEN: u64 = 1000;
const FIELD_BITS: u32 = 20;

impl Throttle {
    /// Creates a full bucket; `None` allows all attempts.
    pub fn new(config: Option<RetryThrottling>) -> Self {
        let throttle = Self::default();
        throttle.configure(config);
        throttle
    }

    /// Applies a new configuration. The bucket stays as full as it was, in relation to its size, as in gRPC C++: an
    /// update must not permit a burst of retries to servers that are overloaded.
    pub fn configure(&self, config: Option<RetryThrottling>) {
        let max = config.map_or(0, |config| u64::from(config.max_tokens.min(MAX_TOKENS)) * TOKEN);
        let ratio = config.map_or(0, |config| u64::from(config.token_ratio_millis).min(max));
        self.update(|bucket| {
            let tokens = (bucket.tokens * max).checked_div(bucket.max).unwrap_or(max);
            TokenBucket { tokens, max, ratio }
        });
    }

    /// Counts a successful call.
    pub fn on_success(&self) {
        self.update(|bucket| {
            let tokens = (bucket.tokens + bucket.ratio).min(bucket.max);
            TokenBucket { tokens, ..bucket }
        });
    }

    /// Counts a failed attempt, and returns whether a further one may start.
    ///
    /// Only failures with a retryable or non-fatal code count, and those whose pushback says not to retry.
    pub fn on_failure(&self) -> bool {
        let bucket =
            self.update(|bucket| TokenBucket { tokens: bucket.tokens.saturating_sub(TOKEN), ..bucket });
        bucket.allows_attempt()
    }

    /// Returns whether a further attempt may start.
    pub fn allows_attempt(&self) -> bool {
        TokenBucket::from_bits(self.0.load(Ordering::Relaxed)).allows_attempt()
    }

    /// Returns the number of tokens in thousandths; 0 without a configuration.
    pub fn token_millis(&self) -> u64 {
        TokenBucket::from_bits(self.0.load(Ordering::Relaxed)).tokens
    }

    /// Returns the new contents.
    fn update(&self, change: impl Fn(TokenBucket) -> TokenBucket) -> TokenBucket {
        let changed = |bits| Some(change(TokenBucket::from_bits(bits)).to_bits()).filter(|&new| new != bits);
        // `Err` holds the current bits, which must not change.
        let old = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
        old.map_or_else(TokenBucket::from_bits, |old| change(TokenBucket::from_bits(old)))
    }
}

impl TokenBucket {
    fn allows_attempt(self) -> bool {
        self.max == 0 || self.tokens > self.max / 2
    }

    fn from_bits(bits: u64) -> Self {
        let field = |position: u32| (bits >> (position * FIELD_BITS)) & ((1 << FIELD_BITS) - 1);
        Self { tokens: field(0), max: field(1), ratio: field(2) }
    }

    fn to_bits(self) -> u64 {
        self.tokens | self.max << FIELD_BITS | self.ratio << (2 * FIELD_BITS)
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TokenBucket::from_bits(self.0.load(Ordering::Relaxed)).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::mix;

    fn config(max_tokens: u32, token_ratio_millis: u32) -> RetryThrottling {
        RetryThrottling { max_tokens, token_ratio_millis }
    }

    fn full(max_tokens: u32, token_ratio_millis: u32) -> Throttle {
        Throttle::new(Some(config(max_tokens, token_ratio_millis)))
    }

    /// Applies failures (`-`) and successes (`+`), and compares the tokens and whether attempts are allowed after each.
    fn check(throttle: &Throttle, events: &str, expected: &[(u64, bool)]) {
        let apply = |event| {
            match event {
                '-' => assert_eq!(throttle.on_failure(), throttle.allows_attempt()),
                _ => throttle.on_success(),
            }
            (throttle.token_millis(), throttle.allows_attempt())
        };
        assert_eq!(events.chars().map(apply).collect::<Vec<_>>(), expected, "{events}");
    }

    /// The sequence of gRPC Java's test of its throttle: 4 tokens, ratio 0.8.
    #[test]
    fn attempts_need_more_than_half_of_the_tokens() {
        let throttle = full(4, 800);
        assert!(throttle.allows_attempt());
        let falling = [(3000, true), (2000, false), (1000, false), (0, false), (0, false)];
        check(&throttle, "-----", &falling);
        let rising = [(800, false), (1600, false), (2400, true), (3200, true), (4000, true), (4000, true)];
        check(&throttle, "++++++", &rising);
        check(&throttle, "--", &[(3000, true), (2000, false)]);
        // Half of an odd number of tokens is not a whole number.
        check(&full(3, 1), "-+--", &[(2000, true), (2001, true), (1001, false), (1, false)]);
        check(&full(1, 1000), "-+", &[(0, false), (1000, true)]);
    }

    #[test]
    fn throttle_without_configuration_allows_all() {
        let throttle = Throttle::default();
        check(&throttle, "---+", &[(0, true); 4]);
        throttle.configure(Some(config(10, 100)));
        check(&throttle, "-", &[(9000, true)]);
        throttle.configure(None);
        check(&throttle, "-", &[(0, true)]);
    }

    /// gRPC C++ keeps the fraction when the configuration of a server name changes.
    #[test]
    fn configuration_keeps_the_fill_level() {
        let throttle = full(10, 100);
        check(&throttle, "----", &[(9000, true), (8000, true), (7000, true), (6000, true)]);
        throttle.configure(Some(config(10, 500)));
        check(&throttle, "+", &[(6500, true)]);
        throttle.configure(Some(config(1000, 1)));
        check(&throttle, "+", &[(650_001, true)]);
        check(&throttle, "-", &[(649_001, true)]);
        throttle.configure(Some(config(2, 100)));
        check(&throttle, "-", &[(298, false)]);
    }

    #[test]
    fn values_beyond_the_limits_count_as_the_limits() {
        let throttle = full(u32::MAX, u32::MAX);
        check(&throttle, "-+", &[(999_000, true), (1_000_000, true)]);
        check(&full(1000, 1 << 20), "--+", &[(999_000, true), (998_000, true), (1_000_000, true)]);
        check(&full(0, 5), "-", &[(0, true)]);
    }

    #[test]
    fn tokens_are_a_clamped_sum_in_any_order_of_threads() {
        let throttle = full(1000, 1000);
        // 4 x 100 failures, then 4 x 60 successes of one token: no step is lost.
        for (count, is_success) in [(100, false), (60, true)] {
            let change = |_| {
                if is_success {
                    throttle.on_success();
                } else {
                    throttle.on_failure();
                }
            };
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| (0..count).for_each(change));
                }
            });
        }
        assert_eq!(throttle.token_millis(), 1_000_000 - 400_000 + 240_000);
    }

    #[test]
    fn tokens_follow_a_plain_model_for_all_seeds() {
        for seed in 0..2000 {
            let mut random = seed;
            let mut draw = |bound: u64| {
                random = mix(random);
                random % bound
            };
            let (max, ratio) = (draw(1000) + 1, draw(2500) + 1);
            let throttle = full(max as u32, ratio as u32);
            let mut tokens = max * 1000;
            for _ in 0..300 {
                if draw(3) == 0 {
                    throttle.on_failure();
                    tokens = tokens.saturating_sub(1000);
                } else if draw(2) == 0 {
                    throttle.on_success();
                    tokens = (tokens + ratio).min(max * 1000);
                }
                assert_eq!(throttle.token_millis(), tokens, "seed {seed}");
                assert_eq!(throttle.allows_attempt(), tokens > max * 500, "seed {seed}");
            }
        }
    }
}
