//! Limits how often a client may send keepalive PINGs (gRFC [A8]).
//!
//! [A8]: https://github.com/grpc/proposal/blob/master/A8-client-side-keepalive.md

use std::time::{Duration, Instant};

use crate::error::ConnectionError;
use crate::violation::Violation;

/// Minimum interval of a client's PINGs; see [`Config::ping_policy`](crate::Config::ping_policy).
///
/// A PING too soon after the last one is a strike. Two are tolerated. HEADERS or DATA sent by the server clear all
/// strikes, so a client may measure round trip or bandwidth after every response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PingPolicy {
    /// Minimum time between two PINGs.
    pub interval_min: Duration,
    /// Whether the same interval applies to a connection without streams. Otherwise it is two hours.
    pub without_streams: bool,
}

impl PingPolicy {
    /// Allows a PING each `interval_min` while there are streams.
    pub fn every(interval_min: Duration) -> Self {
        Self { interval_min, without_streams: false }
    }

    /// Sets [`without_streams`](field@Self::without_streams).
    pub fn without_streams(mut self, without_streams: bool) -> Self {
        self.without_streams = without_streams;
        self
    }
}

/// Between two PINGs of a connection without streams, if it may not have them.
const INTERVAL_MIN_IDLE: Duration = Duration::from_secs(2 * 60 * 60);
/// Number of strikes tolerated.
const STRIKES_MAX: u8 = 2;

/// The PINGs of one client.
#[derive(Debug)]
pub(crate) struct Pings {
    policy: Option<PingPolicy>,
    last: Option<Instant>,
    strikes: u8,
    /// HEADERS or DATA were sent since the last PING.
    sent_since_ping: bool,
}

impl Pings {
    pub(crate) fn new(policy: Option<PingPolicy>) -> Self {
        Self { policy, last: None, strikes: 0, sent_since_ping: false }
    }

    /// Records that HEADERS or DATA are sent.
    #[inline]
    pub(crate) fn note_sent(&mut self) {
        self.sent_since_ping = true;
    }

    /// Handles a PING that arrived while there were streams or not.
    pub(crate) fn receive(&mut self, has_streams: bool, now: Instant) -> Result<(), ConnectionError> {
        let Some(policy) = self.policy else { return Ok(()) };
        let last = self.last.replace(now);
        if std::mem::take(&mut self.sent_since_ping) {
            self.strikes = 0;
            return Ok(());
        }
        let is_permitted = has_streams || policy.without_streams;
        let interval_min = if is_permitted { policy.interval_min } else { INTERVAL_MIN_IDLE };
        // The first PING may arrive at any time.
        if last.is_some_and(|last| now.saturating_duration_since(last) < interval_min) {
            self.strikes += 1;
        }
        if self.strikes > STRIKES_MAX { Err(ConnectionError::calm(Violation::PingsExceeded)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);

    /// An action, and the time before it.
    enum Step {
        Ping(Duration),
        IdlePing(Duration),
        Response,
    }
    use Step::{IdlePing, Ping, Response};

    /// Checks which step, if any, violates the policy.
    #[track_caller]
    fn check(without_streams: bool, steps: &[Step], expected: Option<usize>) {
        let mut pings = Pings::new(Some(PingPolicy { interval_min: 10 * SECOND, without_streams }));
        #[expect(clippy::disallowed_methods, reason = "no other way to get an Instant")]
        let mut now = Instant::now();
        let violating_step = steps.iter().position(|step| {
            let (has_streams, after) = match *step {
                Response => {
                    pings.note_sent();
                    return false;
                }
                Ping(after) => (true, after),
                IdlePing(after) => (false, after),
            };
            now += after;
            pings.receive(has_streams, now).is_err()
        });
        assert_eq!(violating_step, expected);
    }

    #[test]
    fn third_strike_is_a_violation() {
        let soon = || Ping(9 * SECOND);
        check(false, &[soon(), soon(), soon(), soon()], Some(3));
        let enough = || Ping(10 * SECOND);
        check(false, &[enough(), enough(), enough(), enough(), enough(), enough()], None);
        // Waiting does not clear strikes; a response does.
        check(false, &[soon(), soon(), soon(), enough(), enough(), soon()], Some(5));
        check(false, &[soon(), soon(), soon(), Response, soon(), soon(), soon(), soon()], Some(7));
    }

    #[test]
    fn idle_connection_allows_a_ping_every_two_hours() {
        let idle = |after| IdlePing(after);
        check(false, &[idle(HOUR), idle(HOUR), idle(HOUR), idle(HOUR)], Some(3));
        check(false, &[idle(2 * HOUR), idle(2 * HOUR), idle(2 * HOUR), idle(2 * HOUR)], None);
        check(true, &[idle(10 * SECOND), idle(10 * SECOND), idle(10 * SECOND), idle(10 * SECOND)], None);
        check(true, &[idle(SECOND), idle(SECOND), idle(SECOND), idle(SECOND)], Some(3));
    }
}
