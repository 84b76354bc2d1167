//! Retries and hedging (gRFC A6).

use std::time::Duration;

use crate::code::CodeSet;

/// Retry policy of a method (gRFC A6).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Maximum number of attempts, the first included: 2 to 5.
    pub max_attempts: u32,
    /// Backoff before the first retry, with ±20 % jitter.
    pub initial_backoff: Duration,
    /// Maximum backoff.
    pub max_backoff: Duration,
    /// Factor by which the backoff grows with each retry.
    pub backoff_multiplier: f64,
    /// Codes of attempts that are retried; never empty.
    pub retryable_codes: CodeSet,
}

/// Hedging policy of a method (gRFC A6).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HedgingPolicy {
    /// Maximum number of attempts, the first included: 2 to 5.
    pub max_attempts: u32,
    /// Time after which the next attempt starts without an outcome of the former; 0 starts all at once.
    pub hedging_delay: Duration,
    /// Codes of attempts that do not end the call while others are left.
    pub non_fatal_codes: CodeSet,
}
